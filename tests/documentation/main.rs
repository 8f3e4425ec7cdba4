//! The pages in `docs/` say what the code does, as far as a program can tell.

mod keys;
mod links;
mod schema;
