/** A libtorch with headers and libraries: the torch package's directory, installed where there is none. */
export function provideLibtorch(): { directory: string; version: string };
