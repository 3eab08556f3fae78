/** Where models are tested: the CPU, or a CUDA device that is not there (native/test/fake_cuda). */
export const testDevice = process.env.CARILLON_TEST_DEVICE ?? "cpu";
