"""The nouns, one per line: English singular and plural, German article, singular and plural.

``der*`` marks a weak masculine noun: all its forms except the nominative singular are those of the plural.
``-`` as plural marks a mass noun. Places have two more columns, pairs of an English and a German preposition: for the
location (dative), and for the goal of a motion (``in``, ``auf`` with the accusative, ``zu`` with the dative).
"""

from __future__ import annotations

__all__ = ["MOSTLY_OWNED", "NEVER_OWNED", "NOUN_TABLE", "OWNED_ONCE", "PLACE_TABLE"]

NOUN_TABLE = {
    "person": """
        man men der Mann Männer
        woman women die Frau Frauen
        boy boys der* Junge Jungen
        girl girls das Mädchen Mädchen
        child children das Kind Kinder
        father fathers der Vater Väter
        mother mothers die Mutter Mütter
        brother brothers der Bruder Brüder
        sister sisters die Schwester Schwestern
        son sons der Sohn Söhne
        daughter daughters die Tochter Töchter
        uncle uncles der Onkel Onkel
        aunt aunts die Tante Tanten
        nephew nephews der* Neffe Neffen
        niece nieces die Nichte Nichten
        grandfather grandfathers der Großvater Großväter
        grandmother grandmothers die Großmutter Großmütter
        friend friends der Freund Freunde
        neighbor neighbors der* Nachbar Nachbarn
        guest guests der Gast Gäste
        teacher teachers der Lehrer Lehrer
        student students der* Student Studenten
        pupil pupils der Schüler Schüler
        doctor doctors der Arzt Ärzte
        nurse nurses die Krankenschwester Krankenschwestern
        farmer farmers der* Bauer Bauern
        baker bakers der Bäcker Bäcker
        butcher butchers der Metzger Metzger
        tailor tailors der Schneider Schneider
        cook cooks der Koch Köche
        waiter waiters der Kellner Kellner
        gardener gardeners der Gärtner Gärtner
        hunter hunters der Jäger Jäger
        fisherman fishermen der Fischer Fischer
        sailor sailors der* Matrose Matrosen
        captain captains der Kapitän Kapitäne
        pilot pilots der* Pilot Piloten
        driver drivers der Fahrer Fahrer
        policeman policemen der* Polizist Polizisten
        soldier soldiers der* Soldat Soldaten
        judge judges der Richter Richter
        lawyer lawyers der Anwalt Anwälte
        engineer engineers der Ingenieur Ingenieure
        painter painters der Maler Maler
        singer singers die Sängerin Sängerinnen
        dancer dancers die Tänzerin Tänzerinnen
        actor actors der Schauspieler Schauspieler
        writer writers der Schriftsteller Schriftsteller
        poet poets der Dichter Dichter
        journalist journalists der* Journalist Journalisten
        photographer photographers der* Fotograf Fotografen
        scientist scientists der Wissenschaftler Wissenschaftler
        secretary secretaries die Sekretärin Sekretärinnen
        colleague colleagues der* Kollege Kollegen
        boss bosses der Chef Chefs
        customer customers der* Kunde Kunden
        seller sellers der Verkäufer Verkäufer
        tourist tourists der* Tourist Touristen
        mayor mayors der Bürgermeister Bürgermeister
        king kings der König Könige
        queen queens die Königin Königinnen
        prince princes der* Prinz Prinzen
        princess princesses die Prinzessin Prinzessinnen
        thief thieves der Dieb Diebe
        witness witnesses der* Zeuge Zeugen
        hero heroes der* Held Helden
        giant giants der* Riese Riesen
        witch witches die Hexe Hexen
        magician magicians der Zauberer Zauberer
    """,
    "animal": """
        dog dogs der Hund Hunde
        cat cats die Katze Katzen
        horse horses das Pferd Pferde
        cow cows die Kuh Kühe
        pig pigs das Schwein Schweine
        goat goats die Ziege Ziegen
        donkey donkeys der Esel Esel
        rabbit rabbits das Kaninchen Kaninchen
        mouse mice die Maus Mäuse
        bird birds der Vogel Vögel
        hen hens die Henne Hennen
        duck ducks die Ente Enten
        goose geese die Gans Gänse
        owl owls die Eule Eulen
        frog frogs der Frosch Frösche
        turtle turtles die Schildkröte Schildkröten
        fox foxes der Fuchs Füchse
        wolf wolves der Wolf Wölfe
        bear bears der* Bär Bären
        lion lions der* Löwe Löwen
        tiger tigers der Tiger Tiger
        monkey monkeys der* Affe Affen
        elephant elephants der* Elefant Elefanten
        squirrel squirrels das Eichhörnchen Eichhörnchen
    """,
    "snack": """
        apple apples der Apfel Äpfel
        pear pears die Birne Birnen
        banana bananas die Banane Bananen
        orange oranges die Orange Orangen
        cherry cherries die Kirsche Kirschen
        strawberry strawberries die Erdbeere Erdbeeren
        carrot carrots die Karotte Karotten
        tomato tomatoes die Tomate Tomaten
        potato potatoes die Kartoffel Kartoffeln
        egg eggs das Ei Eier
        sausage sausages die Wurst Würste
        cake cakes der Kuchen Kuchen
        cookie cookies der Keks Kekse
        pancake pancakes der Pfannkuchen Pfannkuchen
        pizza pizzas die Pizza Pizzas
        soup soups die Suppe Suppen
        salad salads der Salat Salate
    """,
    "staple": """
        bread - das Brot -
        cheese - der Käse -
        meat - das Fleisch -
        rice - der Reis -
        butter - die Butter -
        honey - der Honig -
        chocolate - die Schokolade -
    """,
    "drink": """
        water - das Wasser -
        milk - die Milch -
        coffee - der Kaffee -
        tea - der Tee -
        juice - der Saft -
        wine - der Wein -
        beer - das Bier -
    """,
    "reading": """
        book books das Buch Bücher
        letter letters der Brief Briefe
        newspaper newspapers die Zeitung Zeitungen
        magazine magazines die Zeitschrift Zeitschriften
        story stories die Geschichte Geschichten
        poem poems das Gedicht Gedichte
        novel novels der Roman Romane
        message messages die Nachricht Nachrichten
        report reports der Bericht Berichte
        article articles der Artikel Artikel
        postcard postcards die Postkarte Postkarten
    """,
    "garment": """
        hat hats der Hut Hüte
        coat coats der Mantel Mäntel
        jacket jackets die Jacke Jacken
        shirt shirts das Hemd Hemden
        dress dresses das Kleid Kleider
        skirt skirts der Rock Röcke
        sweater sweaters der Pullover Pullover
        scarf scarves der Schal Schals
        shoe shoes der Schuh Schuhe
        boot boots der Stiefel Stiefel
        sock socks die Socke Socken
        glove gloves der Handschuh Handschuhe
    """,
    "object": """
        key keys der Schlüssel Schlüssel
        bag bags die Tasche Taschen
        basket baskets der Korb Körbe
        umbrella umbrellas der Regenschirm Regenschirme
        ball balls der Ball Bälle
        doll dolls die Puppe Puppen
        toy toys das Spielzeug Spielzeuge
        gift gifts das Geschenk Geschenke
        ring rings der Ring Ringe
        candle candles die Kerze Kerzen
        brush brushes die Bürste Bürsten
        comb combs der Kamm Kämme
        hammer hammers der Hammer Hämmer
        pencil pencils der Bleistift Bleistifte
        coin coins die Münze Münzen
        ticket tickets die Fahrkarte Fahrkarten
        map maps die Landkarte Landkarten
        pillow pillows das Kissen Kissen
        blanket blankets die Decke Decken
        towel towels das Handtuch Handtücher
        stone stones der Stein Steine
        knife knives das Messer Messer
        fork forks die Gabel Gabeln
        spoon spoons der Löffel Löffel
    """,
    "vessel": """
        cup cups die Tasse Tassen
        glass glasses das Glas Gläser
        bottle bottles die Flasche Flaschen
        plate plates der Teller Teller
        bowl bowls die Schüssel Schüsseln
        vase vases die Vase Vasen
    """,
    "device": """
        lamp lamps die Lampe Lampen
        computer computers der Computer Computer
        radio radios das Radio Radios
        television televisions der Fernseher Fernseher
        camera cameras die Kamera Kameras
        machine machines die Maschine Maschinen
    """,
    "instrument": """
        guitar guitars die Gitarre Gitarren
        violin violins die Geige Geigen
        piano pianos das Klavier Klaviere
        flute flutes die Flöte Flöten
        trumpet trumpets die Trompete Trompeten
    """,
    "furniture": """
        table tables der Tisch Tische
        chair chairs der Stuhl Stühle
        bed beds das Bett Betten
        sofa sofas das Sofa Sofas
        bench benches die Bank Bänke
        carpet carpets der Teppich Teppiche
    """,
    "opening": """
        door doors die Tür Türen
        window windows das Fenster Fenster
        gate gates das Tor Tore
        box boxes die Kiste Kisten
        suitcase suitcases der Koffer Koffer
        cupboard cupboards der Schrank Schränke
        drawer drawers die Schublade Schubladen
    """,
    "vehicle": """
        car cars das Auto Autos
        bicycle bicycles das Fahrrad Fahrräder
        motorcycle motorcycles das Motorrad Motorräder
        truck trucks der Lastwagen Lastwagen
        tractor tractors der Traktor Traktoren
    """,
    "transport": """
        bus buses der Bus Busse
        train trains der Zug Züge
        tram trams die Straßenbahn Straßenbahnen
        taxi taxis das Taxi Taxis
        ship ships das Schiff Schiffe
        boat boats das Boot Boote
    """,
    "plant": """
        tree trees der Baum Bäume
        flower flowers die Blume Blumen
        rose roses die Rose Rosen
        bush bushes der Busch Büsche
        tulip tulips die Tulpe Tulpen
    """,
    "topic": """
        problem problems das Problem Probleme
        question questions die Frage Fragen
        answer answers die Antwort Antworten
        idea ideas die Idee Ideen
        plan plans der Plan Pläne
        secret secrets das Geheimnis Geheimnisse
        mistake mistakes der Fehler Fehler
        word words das Wort Wörter
        sentence sentences der Satz Sätze
        rule rules die Regel Regeln
    """,
    "art": """
        song songs das Lied Lieder
        picture pictures das Bild Bilder
        film films der Film Filme
        dance dances der Tanz Tänze
    """,
}

PLACE_TABLE = {
    "chamber": """
        kitchen kitchens die Küche Küchen in/in into/in
        bedroom bedrooms das Schlafzimmer Schlafzimmer in/in into/in
        bathroom bathrooms das Badezimmer Badezimmer in/in into/in
        cellar cellars der Keller Keller in/in into/in
        office offices das Büro Büros in/in into/in
        room rooms das Zimmer Zimmer in/in into/in
    """,
    "building": """
        house houses das Haus Häuser in/in into/in
        school schools die Schule Schulen in/in to/zu
        church churches die Kirche Kirchen in/in to/zu
        station stations der Bahnhof Bahnhöfe at/an to/zu
        airport airports der Flughafen Flughäfen at/an to/zu
        hospital hospitals das Krankenhaus Krankenhäuser in/in to/in
        shop shops das Geschäft Geschäfte in/in into/in
        bakery bakeries die Bäckerei Bäckereien in/in to/zu
        library libraries die Bibliothek Bibliotheken in/in to/in
        museum museums das Museum Museen in/in to/in
        hotel hotels das Hotel Hotels in/in to/zu
        restaurant restaurants das Restaurant Restaurants in/in to/in
        theater theaters das Theater Theater in/in to/in
        cinema cinemas das Kino Kinos in/in to/in
        factory factories die Fabrik Fabriken in/in to/zu
        castle castles das Schloss Schlösser in/in to/zu
        tower towers der Turm Türme in/in to/zu
        university universities die Universität Universitäten at/an to/zu
        hut huts die Hütte Hütten in/in into/in
        stable stables der Stall Ställe in/in into/in
    """,
    "outdoor": """
        garden gardens der Garten Gärten in/in into/in
        park parks der Park Parks in/in to/in
        forest forests der Wald Wälder in/in into/in
        field fields das Feld Felder in/auf to/zu
        meadow meadows die Wiese Wiesen in/auf to/zu
        street streets die Straße Straßen on/auf onto/auf
        bridge bridges die Brücke Brücken on/auf to/zu
        market markets der Markt Märkte at/auf to/zu
        beach beaches der Strand Strände on/an to/zu
        river rivers der Fluss Flüsse by/an to/zu
        lake lakes der See Seen by/an to/zu
        mountain mountains der Berg Berge on/auf onto/auf
        valley valleys das Tal Täler in/in into/in
        island islands die Insel Inseln on/auf to/auf
        village villages das Dorf Dörfer in/in to/in
        city cities die Stadt Städte in/in to/in
        harbor harbors der Hafen Häfen at/an to/zu
        hill hills der Hügel Hügel on/auf onto/auf
    """,
}

# Nouns that never take a possessive determiner (my, your, ...), nouns that mostly take one, and nouns that mostly take
# one and are then singular, because a person has only one. All other nouns may take one.
NEVER_OWNED = """
    man woman fisherman hunter sailor captain pilot policeman soldier judge engineer painter singer dancer actor writer
    poet journalist photographer scientist seller tourist mayor king queen prince princess thief witness giant witch
    magician farmer butcher baker tailor waiter boy girl hero mouse owl frog fox wolf bear lion tiger monkey elephant
    squirrel bus train tram taxi station airport hospital library museum theater cinema tower university park forest
    street bridge market beach river lake mountain valley island harbor hill
"""
MOSTLY_OWNED = "brother sister son daughter uncle aunt nephew niece friend neighbor colleague"
OWNED_ONCE = "father mother grandfather grandmother boss"
