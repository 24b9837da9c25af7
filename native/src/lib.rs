//! Reads offset ranges of a Kafka topic into buffers in the layout of Arrow: `gamelake.streaming.kafka.reader` uses it.

mod columns;
mod librdkafka;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use columns::{Bitmap, Bytes, Records};
use librdkafka::{Consumer, View};

const AT_ONCE: usize = 2_000;
const PARTITION_EOF: i32 = -191;

/// The offsets of a partition that are still to be read.
struct Range {
    next: i64,
    end: i64,
}

/// An error of a partition, or of none (-1).
struct Failure {
    code: i32,
    text: String,
    partition: i32,
}

/// Code, text and partition.
type ErrorOfPython = (i32, String, i32);

/// A consumer of one topic that is assigned what it reads.
///
/// Args:
///     library: the path of librdkafka.
///     settings: of the consumer, as texts.
///     topic: its name.
#[pyclass(module = "gamelake_native")]
struct RangeConsumer {
    consumer: Consumer,
    pending: HashMap<i32, Range>,
    records: Records,
    failures: Vec<Failure>,
}

#[pymethods]
impl RangeConsumer {
    #[new]
    fn new(library: &str, settings: Vec<(String, String)>, topic: &str) -> PyResult<Self> {
        let consumer = Consumer::new(library, &settings, topic).map_err(PyRuntimeError::new_err)?;
        Ok(Self { consumer, pending: HashMap::new(), records: Records::default(), failures: Vec::new() })
    }

    /// Begin to read ranges (partition, start, end), one for each partition.
    fn assign(&mut self, py: Python<'_>, ranges: Vec<(i32, i64, i64)>) -> PyResult<()> {
        self.pending = ranges
            .iter()
            .filter(|(_, start, end)| start < end)
            .map(|(partition, next, end)| (*partition, Range { next: *next, end: *end }))
            .collect();
        self.records = Records::default();
        self.failures.clear();
        let starts: Vec<(i32, i64)> = self.pending.iter().map(|(partition, range)| (*partition, range.next)).collect();
        py.detach(|| self.consumer.assign(&starts)).map_err(PyRuntimeError::new_err)
    }

    /// Stop reading.
    fn unassign(&mut self, py: Python<'_>) -> PyResult<()> {
        self.pending.clear();
        py.detach(|| self.consumer.assign(&[])).map_err(PyRuntimeError::new_err)
    }

    /// The next offset of each partition whose range is not read to its end.
    fn pending(&self) -> Vec<(i32, i64)> {
        self.pending.iter().map(|(partition, range)| (*partition, range.next)).collect()
    }

    /// Read until there are `records` records or `bytes` bytes, all ranges are read, an error comes, or time has passed.
    ///
    /// Returns:
    ///     The columns of the records as buffers by name, and their number under "length"; None if there are none. And
    ///     the errors as tuples of code, text and partition.
    fn take<'py>(
        &mut self,
        py: Python<'py>,
        records: usize,
        bytes: usize,
        seconds: f64,
    ) -> PyResult<(Option<Bound<'py, PyDict>>, Vec<ErrorOfPython>)> {
        py.detach(|| self.fill(records, bytes, Duration::from_secs_f64(seconds)));
        let failures = self.failures.drain(..).map(|failure| (failure.code, failure.text, failure.partition)).collect();
        let records = std::mem::take(&mut self.records);
        let columns = if records.len() == 0 { None } else { Some(as_buffers(py, records)?) };
        Ok((columns, failures))
    }

    /// The code and text of the newest error of the client as a whole.
    fn last_error(&self) -> Option<(i32, String)> {
        self.consumer.last_error()
    }
}

impl RangeConsumer {
    fn fill(&mut self, records: usize, bytes: usize, time: Duration) {
        let end = Instant::now() + time;
        let Self { consumer, pending, records: taken, failures } = self;
        while !pending.is_empty() && failures.is_empty() && taken.len() < records && taken.bytes() < bytes {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let mut done = Vec::new();
            // What is queued at once, so that a call with large messages keeps few of them.
            let most = AT_ONCE.min(records - taken.len());
            if consumer.messages(most, 0, |view| take_message(view, pending, taken, failures, &mut done)) == 0 {
                consumer.messages(1, left.as_millis() as i32 + 1, |view| {
                    take_message(view, pending, taken, failures, &mut done)
                });
            }
            for partition in done {
                consumer.unassign(partition);
            }
        }
    }
}

fn take_message(
    view: &View,
    pending: &mut HashMap<i32, Range>,
    taken: &mut Records,
    failures: &mut Vec<Failure>,
    done: &mut Vec<i32>,
) {
    let message = view.message;
    let Some(range) = pending.get_mut(&message.partition) else {
        if message.err != 0 && message.err != PARTITION_EOF && message.partition < 0 {
            failures.push(Failure { code: message.err, text: view.error_text(), partition: -1 });
        }
        return;
    };
    match message.err {
        0 if message.offset < range.next => return,
        0 => {
            if message.offset < range.end {
                push(taken, view);
            }
            range.next = message.offset + 1;
        }
        PARTITION_EOF => range.next = range.next.max(message.offset),
        code => failures.push(Failure { code, text: view.error_text(), partition: message.partition }),
    }
    if range.next >= range.end {
        pending.remove(&message.partition);
        done.push(message.partition);
    }
}

fn push(taken: &mut Records, view: &View) {
    taken.keys.push(view.key());
    taken.values.push(view.value());
    taken.partitions.push(view.message.partition);
    taken.offsets.push(view.message.offset);
    taken.milliseconds.push(view.timestamp());
    view.headers(|name, value| taken.headers.push(name, value));
    taken.headers.end_record();
}

fn as_buffers(py: Python<'_>, records: Records) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("length", records.len())?;
    found.set_item("partition", bytes_of(py, &records.partitions))?;
    found.set_item("offset", bytes_of(py, &records.offsets))?;
    found.set_item(
        "milliseconds",
        PyList::new(
            py,
            [validity(py, &records.milliseconds.validity), Some(bytes_of(py, &records.milliseconds.values))],
        )?,
    )?;
    found.set_item("key", binary(py, &records.keys)?)?;
    found.set_item("value", binary(py, &records.values)?)?;
    if !records.headers.names.content.is_empty() || records.headers.offsets.last() != Some(&0) {
        found.set_item(
            "headers",
            PyList::new(py, [validity(py, &records.headers.validity), Some(bytes_of(py, &records.headers.offsets))])?,
        )?;
        found.set_item("names", binary(py, &records.headers.names)?)?;
        found.set_item("values", binary(py, &records.headers.values)?)?;
    }
    Ok(found)
}

fn binary<'py>(py: Python<'py>, column: &Bytes) -> PyResult<Bound<'py, PyList>> {
    PyList::new(
        py,
        [validity(py, &column.validity), Some(bytes_of(py, &column.offsets)), Some(PyBytes::new(py, &column.content))],
    )
}

fn validity<'py>(py: Python<'py>, bitmap: &Bitmap) -> Option<Bound<'py, PyBytes>> {
    (bitmap.nulls > 0).then(|| PyBytes::new(py, &bitmap.bytes))
}

fn bytes_of<'py, T>(py: Python<'py>, values: &[T]) -> Bound<'py, PyBytes> {
    // Arrow's numbers have the order of bytes of the machine.
    let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), std::mem::size_of_val(values)) };
    PyBytes::new(py, bytes)
}

#[pymodule]
fn gamelake_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RangeConsumer>()
}
