// Anchor of the precompiled header that every room shares.
