//! The pages in `docs/` agree with the code in what a program can check.

mod keys;
mod links;
mod schema;
