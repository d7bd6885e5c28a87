//! Shared by the benchmarks: measurements of rounds that ran in turn, and the table with the verdict on
//! each bar.
//!
//! A bar is on a ratio and never on a time. Contenders take turns, round by round, and the ratio is
//! the median of the ratios of single rounds: other load of the machine affects neighbouring rounds
//! alike.

/// The bar of a ratio.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtLeast(f64),
    AtMost(f64),
    /// No bar: for information.
    None,
}

/// One line of the table.
#[derive(Debug)]
struct Row {
    what: String,
    ours: String,
    theirs: String,
    ratio: f64,
    bar: Bar,
}

/// The table at the end of a benchmark.
#[derive(Debug)]
pub(crate) struct Table {
    title: &'static str,
    rows: Vec<Row>,
}

impl Table {
    pub(crate) fn new(title: &'static str) -> Self {
        Self { title, rows: Vec::new() }
    }

    /// One comparison: `what` was measured, for Galley and for the contender.
    pub(crate) fn row(
        &mut self,
        what: impl Into<String>,
        (ours, theirs): (impl Into<String>, impl Into<String>),
        ratio: f64,
        bar: Bar,
    ) {
        let (what, ours, theirs) = (what.into(), ours.into(), theirs.into());
        self.rows.push(Row { what, ours, theirs, ratio, bar });
    }

    /// Writes it to the standard output.
    pub(crate) fn print(&self) {
        println!("\n{}\n", self.title);
        println!("| what | Galley | against | ratio | bar | |");
        println!("|---|---|---|---|---|---|");
        for Row { what, ours, theirs, ratio, bar } in &self.rows {
            let (bar, verdict) = match bar {
                Bar::AtLeast(bar) => (format!("≥ {bar}"), verdict(bar <= ratio)),
                Bar::AtMost(bar) => (format!("≤ {bar}"), verdict(ratio <= bar)),
                Bar::None => (String::new(), ""),
            };
            println!("| {what} | {ours} | {theirs} | {ratio:.2} | {bar} | {verdict} |");
        }
    }
}

fn verdict(is_reached: bool) -> &'static str {
    if is_reached { "PASS" } else { "MISS" }
}

/// The value below which a share of `q` of the values lie; infinity for none, since a missing
/// result took longer than any other.
pub(crate) fn quantile(values: &[f64], q: f64) -> f64 {
    if values.is_empty() {
        return f64::INFINITY;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list that fits in memory"
    )]
    let at = (q * (sorted.len() - 1) as f64).round() as usize;
    sorted[at]
}

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The median of the ratios of single rounds.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios: Vec<_> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    median(&ratios)
}
