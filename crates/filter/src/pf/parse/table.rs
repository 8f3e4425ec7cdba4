//! `table`

use crate::pf::error::PfResult;
use crate::pf::parse::addresses::{hosts, table_name, without_quotes};
use crate::pf::parse::tokens::Tokens;
use crate::pf::syntax::{TableSourceSyntax, TableSyntax};

pub fn table(tokens: &mut Tokens) -> PfResult<TableSyntax> {
    let position = tokens.position();
    tokens.expect_word("table")?;
    let name = table_name(tokens)?;
    let (constant, persist, counters) = (false, false, false);
    let mut table = TableSyntax { position, name, constant, persist, counters, sources: Vec::new() };
    while !tokens.at_end() {
        option(tokens, &mut table)?;
    }
    Ok(table)
}

fn option(tokens: &mut Tokens, table: &mut TableSyntax) -> PfResult<()> {
    if tokens.eat_word("const") {
        table.constant = true;
    } else if tokens.eat_word("persist") {
        table.persist = true;
    } else if tokens.eat_word("counters") {
        table.counters = true;
    } else if tokens.eat_word("file") {
        let position = tokens.position();
        let path = without_quotes(tokens.text("a path")?, &position)?;
        table.sources.push(TableSourceSyntax::File { position, path });
    } else if tokens.is_sign('{') {
        table.sources.push(TableSourceSyntax::List(entries(tokens)?));
    } else {
        return Err(tokens.unexpected("'const', 'persist', 'counters', 'file' or addresses in braces"));
    }
    Ok(())
}

fn entries(tokens: &mut Tokens) -> PfResult<Vec<crate::pf::syntax::HostSyntax>> {
    if tokens.second_is_sign('}') {
        tokens.advance();
        tokens.advance();
        return Ok(Vec::new());
    }
    hosts(tokens)
}
