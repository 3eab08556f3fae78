declare module "fs-native-extensions" {
  /**
   * Locks the file behind the descriptor `fd`. Returns false if the file was opened elsewhere and is locked there.
   */
  export function tryLock(fd: number): boolean;
}
