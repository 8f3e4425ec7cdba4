//! What the checks ask about single items: their attributes, their names, whether they are test code.

use proc_macro2::TokenTree;
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, ImplItem, Item, Meta, Token};

pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub fn member_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// The name an item puts into its module, except for modules and imports.
pub fn name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        other => type_name(other),
    }
}

pub fn type_name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Enum(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

/// The file that `#[path]` gives to a module.
pub fn file_of(module: &syn::ItemMod) -> Option<String> {
    module.attrs.iter().find(|attribute| attribute.path().is_ident("path")).and_then(|attribute| {
        let value = &attribute.meta.require_name_value().ok()?.value;
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(file), .. }) = value else { return None };
        Some(file.value())
    })
}

/// Whether an item exists only in tests: `#[test]`, or a `cfg` that needs `test`.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args().is_ok_and(|meta| needs_test(&meta))
        }
        _ => false,
    })
}

fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return condition.path().is_ident("test") };
    let Ok(parts) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else {
        return false;
    };
    if list.path.is_ident("all") {
        parts.iter().any(needs_test)
    } else {
        list.path.is_ident("any") && !parts.is_empty() && parts.iter().all(needs_test)
    }
}

/// The paths in the tokens of a macro: names joined by `::`, each with the line it begins in. Fields and methods, which
/// follow a point, are no paths.
pub fn token_paths(tokens: proc_macro2::TokenStream, found: &mut Vec<(Vec<String>, usize)>) {
    let (mut path, mut line, mut before): (Vec<String>, usize, [char; 2]) = (Vec::new(), 0, [' ', ' ']);
    for token in tokens {
        let this = match &token {
            TokenTree::Ident(name) => {
                if before != [':', ':'] || path.is_empty() {
                    keep(&mut path, line, found);
                    line = name.span().start().line;
                }
                if before[1] != '.' {
                    path.push(name.to_string());
                }
                'a'
            }
            TokenTree::Punct(mark) => mark.as_char(),
            _ => ' ',
        };
        if this != 'a' && this != ':' {
            keep(&mut path, line, found);
        }
        if let TokenTree::Group(group) = token {
            token_paths(group.stream(), found);
        }
        before = [before[1], this];
    }
    keep(&mut path, line, found);
}

fn keep(path: &mut Vec<String>, line: usize, found: &mut Vec<(Vec<String>, usize)>) {
    if !path.is_empty() {
        found.push((std::mem::take(path), line));
    }
}
