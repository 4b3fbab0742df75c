"""The folder for Heat's option `plugin_dirs`."""
