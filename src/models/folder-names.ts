/**
 * Separates owner and name in folders of downloaded repositories, `owner--name`. Folders of ACE-Step's repositories
 * have no owner.
 */
export const OWNER_SEPARATOR = "--";
