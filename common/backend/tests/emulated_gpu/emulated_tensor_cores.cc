/* A warp's instructions for tensor cores, with the layouts of the PTX ISA. See
 * backend/cuda/tensor_cores.cuh. */
#include "cuda_fp16.h"

float emulated_number(bool fp16, uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (!fp16) {
        const uint32_t whole = static_cast<uint32_t>(bits) << 16;
        float number;
        std::memcpy(&number, &whole, sizeof number);
        return number;
    }
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent == 0
                           ? std::ldexp(static_cast<float>(fraction), -24)
                           : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    return bits & 0x8000 ? -size : size;
}

static uint16_t half_of(uint64_t word, int which)
{
    return static_cast<uint16_t>(word >> 16 * which);
}

/* Shows two words of each lane to all lanes: of[i] and of[32 + i] are those of lane i. */
static void show(uint64_t *of, uint64_t low, uint64_t high)
{
    uint64_t *lanes = emulated_lanes();
    const uint64_t words[2] = {low, high};
    for (int i = 0; i < 2; i++) {
        lanes[threadIdx.x % warpSize] = words[i];
        emulated_barrier(true, 1);
        std::memcpy(of + 32 * i, lanes, 32 * sizeof *lanes);
        emulated_barrier(true, 2);
    }
}

void emulated_multiply_add(bool fp16, float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                           uint32_t b1)
{
    uint64_t left[64], right[64];
    const int lane = static_cast<int>(threadIdx.x % warpSize), g = lane / 4, t = lane % 4;
    show(left, a[0] | static_cast<uint64_t>(a[1]) << 32, a[2] | static_cast<uint64_t>(a[3]) << 32);
    show(right, b0 | static_cast<uint64_t>(b1) << 32, 0);
    for (int i = 0; i < 4; i++) {
        const int column = 2 * t + i % 2;
        double sum = 0;
        for (int k = 0; k < 16; k++) {
            const int of = k % 8 / 2;
            const uint16_t x = half_of(left[k / 8 * 32 + g * 4 + of], i / 2 * 2 + k % 2);
            const uint16_t y = half_of(right[column * 4 + of], k / 8 * 2 + k % 2);
            sum += static_cast<double>(emulated_number(fp16, x)) *
                   static_cast<double>(emulated_number(fp16, y));
        }
        c[i] += static_cast<float>(sum);
    }
}

void emulated_load_matrices(bool transposed, uint32_t (&word)[4], const uint16_t *row)
{
    uint64_t rows[64];
    const int lane = static_cast<int>(threadIdx.x % warpSize), g = lane / 4, t = lane % 4;
    if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
        fprintf(stderr, "emulated GPU: ldmatrix reads at what is no multiple of 16 bytes\n");
        abort();
    }
    show(rows, reinterpret_cast<uintptr_t>(row), 0);
    for (int matrix = 0; matrix < 4; matrix++) {
        uint32_t halves[2];
        for (int i = 0; i < 2; i++) {
            const int at = transposed ? 2 * t + i : g, column = transposed ? g : 2 * t + i;
            halves[i] = reinterpret_cast<const uint16_t *>(rows[matrix * 8 + at])[column];
        }
        word[matrix] = halves[0] | halves[1] << 16;
    }
}
