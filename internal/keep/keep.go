package keep
