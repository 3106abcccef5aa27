//! The columns and the key of a table, from the catalog.

use watchkeeper_core::Error;

use super::connection::{Connection, identifier, literal};
use super::failure::Failure;
use super::settings::{Settings, StatusPlace};
use super::value::{Form, form};
use crate::database::Names;
use crate::print::Print;

/// A table, as it was when it was looked up.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) oid: u32,
    /// In quotes, with its schema.
    pub(super) sql: String,
    schema: String,
    name: String,
    /// `pg_class.relkind`.
    kind: char,
    /// `pg_class.relreplident`.
    identity: char,
    /// Those that objects have.
    pub(super) columns: Vec<Column>,
    /// The names of all there are.
    pub(super) all: Vec<String>,
    /// Which of the columns are the key, in its order.
    pub(super) key: Vec<usize>,
    /// Which of the key is the namespace.
    pub(super) namespace: Option<usize>,
    /// Whether no two rows can have one key.
    pub(super) unique: bool,
    pub(super) names: Names,
    /// Changes with whatever makes rows look different or appear without being written.
    pub(super) signature: String,
    /// What rows have to be, by the publication.
    pub(super) filter: Option<String>,
}

/// A column of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) oid: u32,
    pub(super) form: Form,
    /// Whether a deleted row is logged with it.
    pub(super) in_identity: bool,
    generated: bool,
}

/// A text that changes when a table gets other columns, other partitions, other labels of its enums, or is made anew.
fn signature_sql(table: &str) -> String {
    format!(
        "SELECT concat_ws(' ', c.oid, c.relkind, c.relreplident, \
           (SELECT string_agg(concat_ws(':', a.attnum, a.attname, a.atttypid, \
               (SELECT string_agg(e.enumlabel, '/' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = a.atttypid)), ',' \
               ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), \
           (WITH RECURSIVE below(oid) AS (SELECT inhrelid FROM pg_inherits WHERE inhparent = c.oid \
               UNION SELECT i.inhrelid FROM pg_inherits i JOIN below ON i.inhparent = below.oid) \
             SELECT string_agg(oid::text, ',' ORDER BY oid) FROM below), \
           (SELECT string_agg(concat_ws(':', i.indexrelid, i.indisprimary, i.indisunique), ',' ORDER BY i.indexrelid) \
              FROM pg_index i WHERE i.indrelid = c.oid)) \
         FROM pg_class c WHERE c.oid = to_regclass({})",
        literal(table)
    )
}

/// What tells this shape of a table from another one.
pub(super) async fn signature(connection: &mut Connection, settings: &Settings) -> Result<String, Failure> {
    let rows = connection.query(&signature_sql(&settings.table)).await?;
    let text = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
    text.map(|text| Print::of(text.as_bytes()).version().to_string()).ok_or_else(|| missing(settings))
}

fn missing(settings: &Settings) -> Failure {
    Failure::Decided(Error::Missing(format!("{}: there is no such table", settings.name)))
}

impl Table {
    /// Looks a table up.
    pub(super) async fn read(connection: &mut Connection, settings: &Settings) -> Result<Self, Failure> {
        let signature = signature(connection, settings).await?;
        let rows = connection
            .query(&format!(
                "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relreplident FROM pg_class c \
                 JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass({})",
                literal(&settings.table)
            ))
            .await?;
        let Some([Some(oid), Some(schema), Some(name), Some(kind), Some(identity)]) =
            rows.first().map(|row| &**row)
        else {
            return Err(missing(settings));
        };
        let oid: u32 = oid.parse().map_err(|_| Failure::Connection("a table has no number".into()))?;
        let columns = columns(connection, oid).await?;
        let mut table = Self {
            oid,
            sql: format!("{}.{}", identifier(schema), identifier(name)),
            schema: schema.clone(),
            name: name.clone(),
            kind: kind.chars().next().unwrap_or_default(),
            identity: identity.chars().next().unwrap_or_default(),
            all: columns.iter().map(|column| column.name.clone()).collect(),
            columns,
            key: Vec::new(),
            namespace: None,
            unique: false,
            names: Names::default(),
            signature,
            filter: None,
        };
        if table.identity == 'f' {
            table.columns.iter_mut().for_each(|column| column.in_identity = true);
        }
        table.choose_key(connection, settings).await?;
        table.leave_out(settings)?;
        Ok(table)
    }

    /// Whether rows say which transaction wrote them.
    pub(super) fn has_transactions(&self) -> bool {
        matches!(self.kind, 'r' | 'p' | 'm') && self.unique
    }

    /// What is named after it: its trigger, its publication, its channel.
    pub(super) fn companion(&self) -> String {
        let mut name = format!("watchkeeper_{}_{}", self.schema, self.name);
        // PostgreSQL's names have 63 bytes at most.
        while name.len() > 63 {
            name.pop();
        }
        name
    }

    pub(super) fn schema_and_name(&self) -> (&str, &str) {
        (&self.schema, &self.name)
    }

    pub(super) fn is_partitioned(&self) -> bool {
        self.kind == 'p'
    }

    pub(super) fn is_view(&self) -> bool {
        !matches!(self.kind, 'r' | 'p')
    }

    /// What has to be so that its log says all there is to know.
    pub(super) fn check_for_replication(&self, settings: &Settings) -> Result<(), Failure> {
        let fatal = |why: String| Err(Failure::Settings(why));
        let (name, sql) = (&settings.table, &self.sql);
        if self.is_view() {
            return fatal(format!("{name} is not a table, and only tables are replicated: poll it"));
        }
        let uncovered = self.key.iter().map(|at| &self.columns[*at]).find(|column| !column.in_identity);
        if let Some(column) = uncovered {
            return fatal(format!(
                "the log does not say the {} of rows that are deleted, which is part of the key: \
                 ALTER TABLE {sql} REPLICA IDENTITY FULL, or USING INDEX one that has it",
                column.name
            ));
        }
        if !self.unique {
            return fatal(format!("no unique index of {name} makes the key unique: create one"));
        }
        Ok(())
    }

    /// Only these columns are published, and rows that are like this.
    pub(super) fn restrict(&mut self, published: &[String], filter: Option<String>) -> Result<(), Failure> {
        if !published.is_empty() {
            self.keep(|column| published.contains(&column.name))?;
        }
        self.filter = filter;
        Ok(())
    }

    /// Columns that are computed are not in the log.
    pub(super) fn without_generated(&mut self) -> Result<(), Failure> {
        self.keep(|column| !column.generated)
    }

    async fn choose_key(&mut self, connection: &mut Connection, settings: &Settings) -> Result<(), Failure> {
        let indexes = connection
            .query(&format!(
                "SELECT i.indisprimary, (SELECT string_agg(a.attname, chr(31) ORDER BY k.n) \
                   FROM unnest(i.indkey) WITH ORDINALITY k(attnum, n) \
                   JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE k.n <= i.indnkeyatts) \
                 FROM pg_index i WHERE i.indrelid = {} AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL \
                 AND i.indisvalid AND i.indimmediate ORDER BY i.indisprimary DESC",
                self.oid
            ))
            .await?;
        let columns = |row: &Vec<Option<String>>| -> Vec<String> {
            row.get(1).cloned().flatten().unwrap_or_default().split('\u{1f}').map(str::to_owned).collect()
        };
        let primary = indexes.iter().find(|row| row.first() == Some(&Some("t".into())));
        let key = match (settings.key.is_empty(), primary) {
            (false, _) => settings.key.clone(),
            (true, Some(primary)) => columns(primary),
            (true, None) => {
                return Err(Failure::Settings(format!(
                    "{} has no primary key: name the columns that tell its rows apart",
                    settings.table
                )));
            }
        };
        self.unique = indexes.iter().any(|index| columns(index).iter().all(|column| key.contains(column)));
        self.key = key.iter().map(|name| self.find(name, settings)).collect::<Result<_, _>>()?;
        if let Some(namespace) = &settings.namespace {
            let at = self.find(namespace, settings)?;
            let Some(of_key) =
                self.key.iter().position(|column| *column == at).filter(|_| self.key.len() > 1)
            else {
                return Err(Failure::Settings(format!(
                    "the namespace {namespace} is not one of several columns of the key"
                )));
            };
            self.namespace = Some(of_key);
        }
        Ok(())
    }

    fn leave_out(&mut self, settings: &Settings) -> Result<(), Failure> {
        let mut without = settings.without.clone();
        if let Some(StatusPlace::Column(column)) = &settings.status {
            without.push(column.clone());
        }
        for column in &without {
            self.find(column, settings)?;
        }
        self.keep(|column| !without.contains(&column.name))
    }

    fn find(&self, name: &str, settings: &Settings) -> Result<usize, Failure> {
        let found = self.columns.iter().position(|column| column.name == name);
        found.ok_or_else(|| Failure::Settings(format!("{} has no column {name}", settings.table)))
    }

    fn keep(&mut self, keep: impl Fn(&Column) -> bool) -> Result<(), Failure> {
        let key: Vec<String> = self.key.iter().map(|at| self.columns[*at].name.clone()).collect();
        self.columns.retain(keep);
        let place = |name: &String| self.columns.iter().position(|column| column.name == *name);
        let found: Option<Vec<usize>> = key.iter().map(place).collect();
        self.key = found.ok_or_else(|| {
            let key = key.join(", ");
            Failure::Settings(format!("a column of the key ({key}) is left out, generated or not published"))
        })?;
        self.names = Names::new(self.columns.iter().map(|column| &*column.name));
        Ok(())
    }

    /// The table and nothing that inherits from it: that has a log of its own.
    pub(super) fn only(&self) -> String {
        if self.is_partitioned() { self.sql.clone() } else { format!("ONLY {}", self.sql) }
    }

    /// The columns of objects, for a SELECT.
    pub(super) fn selected(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|column| identifier(&column.name)).collect();
        names.join(", ")
    }

    /// The columns of the key, for a SELECT.
    pub(super) fn selected_key(&self) -> String {
        let names: Vec<String> = self.key.iter().map(|at| identifier(&self.columns[*at].name)).collect();
        names.join(", ")
    }

    /// `WHERE` what is published, and what else is asked for.
    pub(super) fn condition(&self, and: Option<String>) -> String {
        let conditions: Vec<String> = self.filter.iter().chain(&and).map(|one| format!("({one})")).collect();
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
    }

    /// Where several rows have one key, which one comes first must not change from read to read.
    pub(super) fn order(&self) -> String {
        if self.unique { String::new() } else { format!(" ORDER BY {}, t::text", self.selected_key()) }
    }
}

async fn columns(connection: &mut Connection, table: u32) -> Result<Vec<Column>, Failure> {
    // A domain is written as what it is made of.
    let base = |oid: &str| {
        format!(
            "(WITH RECURSIVE d AS (SELECT t.oid, t.typbasetype, t.typtype FROM pg_type t WHERE t.oid = {oid} \
             UNION ALL SELECT t.oid, t.typbasetype, t.typtype FROM d JOIN pg_type t ON t.oid = d.typbasetype WHERE d.typtype = 'd') \
             SELECT d.oid FROM d WHERE d.typtype <> 'd')"
        )
    };
    let rows = connection
        .query(&format!(
            "SELECT a.attname, a.atttypid, b.oid, CASE WHEN b.typcategory = 'A' AND b.typlen = -1 THEN {} END, b.typdelim, a.attgenerated <> '', \
               EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE i.indrelid = a.attrelid AND a.attnum = ANY (i.indkey) \
                 AND ((c.relreplident = 'd' AND i.indisprimary) OR (c.relreplident = 'i' AND i.indisreplident))) \
             FROM pg_attribute a JOIN pg_type b ON b.oid = {} \
             WHERE a.attrelid = {table} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            base("b.typelem"),
            base("a.atttypid")
        ))
        .await?;
    rows.into_iter().map(column).collect()
}

fn column(row: Vec<Option<String>>) -> Result<Column, Failure> {
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<u32>().ok());
    let [Some(name), oid, base, element, delimiter, generated, in_identity] = &*row else {
        return Err(Failure::Connection("a column has no name".into()));
    };
    let true_ = Some("t".to_owned());
    let delimiter = delimiter.as_ref().and_then(|text| text.bytes().next()).unwrap_or(b',');
    let form = match number(element) {
        Some(element) => Form::List(Box::new(form(element)), delimiter),
        None => form(number(base).unwrap_or_default()),
    };
    Ok(Column {
        name: name.clone(),
        oid: number(oid).unwrap_or_default(),
        form,
        in_identity: *in_identity == true_,
        generated: *generated == true_,
    })
}
