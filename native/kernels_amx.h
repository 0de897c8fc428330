/* Products in AMX's registers: tiles of 16 rows. Included in kernels.c. */
struct tile_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_of_row[16];
    uint8_t n_rows[16];
};

/* C += A B for 32 rows and 32 outputs: tiles 0 to 3 are C, 4 and 5 rows of A, 6 and 7 panels of B. A step of 64 bytes has
   64 inputs of int8 (A unsigned, B signed), or 32 of bf16. */
#define TILE_STEPS(multiply)                                                                                        \
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);                                                     \
    for (size_t k = 0; k < row_bytes; k += 64) {                                                                    \
        _tile_loadd(4, a + k, (long)row_bytes);                                                                     \
        _tile_loadd(6, b + 16 * k, 64);                                                                             \
        multiply(0, 4, 6);                                                                                          \
        if (has_second_panel) { _tile_loadd(7, b + panel_bytes + 16 * k, 64); multiply(1, 4, 7); }                  \
        if (has_second_rows) {                                                                                      \
            _tile_loadd(5, a + 16 * row_bytes + k, (long)row_bytes);                                                \
            multiply(2, 5, 6);                                                                                      \
            if (has_second_panel) multiply(3, 5, 7);                                                                \
        }                                                                                                           \
    }

static void product_in_tiles(const struct matrix *m, const struct input *x, int begin, int end,
                             enum activation activation, float *y, size_t y_stride) {
    struct tile_configuration configuration = {.palette = 1};
    for (int i = 0; i < 8; i++) configuration.bytes_of_row[i] = 64, configuration.n_rows[i] = 16;
    _tile_loadconfig(&configuration);
    const int is_int8 = m->precision == INT8;
    const size_t row_bytes = (size_t)m->padded_inputs * (is_int8 ? 1 : 2), panel_bytes = row_bytes * PANEL;
    _Alignas(64) int32_t sums[4][16][PANEL];
    for (int first = begin; first < end; first += GROUP) {
        const int last = first + GROUP < end ? first + GROUP : end;
        for (int row = 0; row < x->n_rows; row += 32)
            for (int panel = first; panel < last; panel += 2) {
                const int has_second_panel = panel + 1 < last, has_second_rows = row + 16 < x->n_rows;
                const char *a = (is_int8 ? (const char *)x->int8 : (const char *)x->bf16) + (size_t)row * row_bytes;
                const char *b = (const char *)m->weights + (size_t)panel * panel_bytes;
                if (is_int8) { TILE_STEPS(_tile_dpbusd) } else { TILE_STEPS(_tile_dpbf16ps) }
                _tile_stored(0, sums[0], 64);
                _tile_stored(1, sums[1], 64);
                _tile_stored(2, sums[2], 64);
                _tile_stored(3, sums[3], 64);
                for (int c = 0; c <= has_second_panel; c++)
                    for (int r = 0; r < 32 && row + r < x->n_rows; r++) {
                        const int32_t *from = sums[2 * (r / 16) + c][r % 16];
                        const lanes sum = is_int8 ? scaled(from, m->offset + (panel + c) * PANEL, m, panel + c, x->step[row + r])
                                                  : load((const float *)(const void *)from);
                        write(sum, m, panel + c, activation, y + (size_t)(row + r) * y_stride + (size_t)(panel + c - begin) * PANEL);
                    }
            }
    }
    _tile_release();
}
