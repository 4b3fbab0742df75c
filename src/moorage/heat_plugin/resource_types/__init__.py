"""The folder for Heat's option `plugin_dirs`.

Heat imports every module here by its path. What lives here maps types to classes, and nothing else:
the classes are in `moorage.heat_plugin`, so that they exist once in the process.
"""
