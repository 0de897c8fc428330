// Files on the page of the server: chosen or dropped, translated one after the other, each with a link to its result.

async function translateFiles(files) {
  const items = [...files].map((file) => [file, listed(file.name)]); // all are shown before the first is done
  for (const [file, item] of items) {
    const form = new FormData();
    for (const [name, value] of Object.entries({ file, source: $("source").value, target: $("target").value })) form.append(name, value);
    item.textContent = `${file.name}: translating`;
    try {
      const { translatedFileUrl } = await send("translate_file", form);
      const link = document.createElement("a");
      const address = translatedFileUrl.split("/").pop();
      link.href = `download_file/${address}`; // also behind a proxy that has another address
      link.download = decodeURIComponent(address.slice(address.indexOf(".") + 1));
      link.textContent = link.download;
      item.replaceChildren(`${file.name}: `, link);
    } catch (error) {
      item.textContent = `${file.name}: ${error instanceof TypeError ? "The server cannot be reached." : error.message}`;
    }
  }
}

function listed(name) {
  const item = document.createElement("li");
  item.textContent = `${name}: waiting`;
  $("documents").append(item);
  $("documents").hidden = false;
  return item;
}

const hasFiles = (event) => !$("choose").hidden && event.dataTransfer?.types.includes("Files");
$("choose").addEventListener("click", () => $("files").click());
$("files").addEventListener("change", () => {
  translateFiles($("files").files);
  $("files").value = ""; // so that the same file can be chosen again
});
document.addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  root.classList.add("is-dropping");
});
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) root.classList.remove("is-dropping"); });
document.addEventListener("drop", (event) => {
  root.classList.remove("is-dropping");
  if (!hasFiles(event)) return;
  event.preventDefault();
  translateFiles(event.dataTransfer.files);
});
