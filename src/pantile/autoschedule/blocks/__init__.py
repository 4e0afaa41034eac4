"""Parts of autogpu (sioutas-thesis chapter 6): tile sizes, costs of groups as blocks of threads, nested fusion."""
