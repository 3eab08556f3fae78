declare module "fft.js" {
  /** The transform of one length, a power of two; spectra are complex and interleaved. */
  export default class FFT {
    constructor(size: number);
    createComplexArray(): number[];
    /** Fills the first half of the spectrum: the bins up to half the rate. */
    realTransform(spectrum: number[], samples: ArrayLike<number>): void;
  }
}
