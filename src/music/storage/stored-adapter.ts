/** An adapter identified by its content. */
export interface StoredAdapter {
  /** Hash of the files and their names. */
  digest: string;
  /** Object name of each file, by its path in the adapter. */
  files: Record<string, string>;
  /** The weights file that was loaded; "" for a folder. */
  entry: string;
}
