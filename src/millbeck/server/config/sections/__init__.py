"""The broker's options by concern. Declarations only: a value's use is with whoever reads the section."""
