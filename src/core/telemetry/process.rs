//! The series of this process, under the names and with the meanings of Prometheus' client libraries.
//!
//! They are text and no series of the recorder: its counters are whole numbers, and a second is too long a
//! unit of processor time.

#[cfg(target_os = "linux")]
pub(super) fn render() -> String {
    // A process that cannot read its own folder reports none of them.
    read().map(|values| text(&values)).unwrap_or_default()
}

/// Only Linux has `/proc`.
#[cfg(not(target_os = "linux"))]
pub(super) const fn render() -> String {
    String::new()
}

#[cfg(target_os = "linux")]
const SERIES: [(&str, &str, &str); 7] = [
    ("cpu_seconds_total", "counter", "Processor time of user and system in seconds."),
    ("open_fds", "gauge", "Open file descriptors."),
    ("max_fds", "gauge", "The limit on open file descriptors."),
    ("virtual_memory_bytes", "gauge", "Virtual memory."),
    ("resident_memory_bytes", "gauge", "Resident memory."),
    ("start_time_seconds", "gauge", "The start of the process, since 1970."),
    ("threads", "gauge", "Threads of the system."),
];

/// In the order of [`SERIES`].
#[cfg(target_os = "linux")]
#[expect(clippy::cast_precision_loss, reason = "the values of Prometheus are floats")]
fn read() -> procfs::ProcResult<[f64; 7]> {
    use procfs::process::{LimitValue, Process};
    let process = Process::myself()?;
    let stat = process.stat()?;
    let ticks = procfs::ticks_per_second() as f64;
    let files = match process.limits()?.max_open_files.soft_limit {
        LimitValue::Value(files) => files as f64,
        LimitValue::Unlimited => f64::INFINITY,
    };
    Ok([
        (stat.utime + stat.stime) as f64 / ticks,
        process.fd_count()? as f64,
        files,
        stat.vsize as f64,
        (stat.rss * procfs::page_size()) as f64,
        procfs::boot_time_secs()? as f64 + stat.starttime as f64 / ticks,
        stat.num_threads as f64,
    ])
}

#[cfg(target_os = "linux")]
fn text(values: &[f64; 7]) -> String {
    let series = SERIES.iter().zip(values).map(|((name, kind, meaning), value)| {
        let value = if value.is_finite() { value.to_string() } else { "+Inf".to_owned() };
        format!(
            "# HELP process_{name} {meaning}\n# TYPE process_{name} {kind}\nprocess_{name} {value}\n"
        )
    });
    series.collect()
}
