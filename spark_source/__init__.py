"""A PySpark data source whose tasks follow an assignment."""
