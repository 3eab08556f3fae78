/** Returns directory and version of a libtorch with headers and libraries. Installs one if none is found. */
export function provideLibtorch(): { directory: string; version: string };
