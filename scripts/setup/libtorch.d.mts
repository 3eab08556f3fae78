/** Returns a libtorch with headers and libraries (a torch package's directory); installs one if none is found. */
export function provideLibtorch(): { directory: string; version: string };
