"""The pages, a file each; `app.navigation` lists them."""
