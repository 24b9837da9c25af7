//! The functions of librdkafka that a consumer needs, from a shared library that is loaded at run time.
//!
//! Source: librdkafka, `rdkafka.h`; its ABI is stable within a major version.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::Mutex;

use libloading::Library;

const CONSUMER: c_int = 1;
const CONF_OK: c_int = 0;
const FLAG_NO_CONSUMER_CLOSE: c_int = 0x8;
const NO_TIMESTAMP: c_int = 0;
const ERROR_BYTES: usize = 512;

/// A message as librdkafka has it: a record, an error or the end of a partition.
#[repr(C)]
pub struct Message {
    pub err: c_int,
    rkt: *mut c_void,
    pub partition: i32,
    payload: *const u8,
    len: usize,
    key: *const u8,
    key_len: usize,
    pub offset: i64,
    private: *mut c_void,
}

#[repr(C)]
struct TopicPartition {
    topic: *mut c_char,
    partition: i32,
    offset: i64,
    // Further fields that nothing here reads.
}

type ErrorCallback = unsafe extern "C" fn(*mut c_void, c_int, *const c_char, *mut c_void);

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions { $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)* }

        impl Functions {
            /// # Safety
            /// The library must be librdkafka.
            unsafe fn of(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self { $($name: *library.get(stringify!($name).as_bytes())?,)* })
            }
        }
    };
}

functions! {
    rd_kafka_conf_new: fn() -> *mut c_void;
    rd_kafka_conf_set: fn(*mut c_void, *const c_char, *const c_char, *mut c_char, usize) -> c_int;
    rd_kafka_conf_set_error_cb: fn(*mut c_void, ErrorCallback);
    rd_kafka_conf_set_opaque: fn(*mut c_void, *mut c_void);
    rd_kafka_conf_destroy: fn(*mut c_void);
    rd_kafka_new: fn(c_int, *mut c_void, *mut c_char, usize) -> *mut c_void;
    rd_kafka_poll_set_consumer: fn(*mut c_void) -> c_int;
    rd_kafka_queue_get_consumer: fn(*mut c_void) -> *mut c_void;
    rd_kafka_queue_destroy: fn(*mut c_void);
    rd_kafka_destroy_flags: fn(*mut c_void, c_int);
    rd_kafka_consume_batch_queue: fn(*mut c_void, c_int, *mut *mut Message, usize) -> isize;
    rd_kafka_message_destroy: fn(*mut Message);
    rd_kafka_message_errstr: fn(*const Message) -> *const c_char;
    rd_kafka_message_timestamp: fn(*const Message, *mut c_int) -> i64;
    rd_kafka_message_headers: fn(*const Message, *mut *mut c_void) -> c_int;
    rd_kafka_header_get_all: fn(*const c_void, usize, *mut *const c_char, *mut *const u8, *mut usize) -> c_int;
    rd_kafka_topic_partition_list_new: fn(c_int) -> *mut c_void;
    rd_kafka_topic_partition_list_add: fn(*mut c_void, *const c_char, i32) -> *mut TopicPartition;
    rd_kafka_topic_partition_list_destroy: fn(*mut c_void);
    rd_kafka_assign: fn(*mut c_void, *const c_void) -> c_int;
    rd_kafka_incremental_unassign: fn(*mut c_void, *const c_void) -> *mut c_void;
    rd_kafka_error_destroy: fn(*mut c_void);
    rd_kafka_err2str: fn(c_int) -> *const c_char;
}

/// The newest error of the client as a whole, such as a lost connection: its code and text.
pub type LastError = Mutex<Option<(c_int, String)>>;

unsafe extern "C" fn note_error(_: *mut c_void, code: c_int, reason: *const c_char, opaque: *mut c_void) {
    let last = &*(opaque as *const LastError);
    if let Ok(mut last) = last.lock() {
        *last = Some((code, text_of(reason)));
    }
}

fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A consumer whose partitions are assigned.
pub struct Consumer {
    functions: Functions,
    handle: *mut c_void,
    queue: *mut c_void,
    topic: CString,
    last_error: Box<LastError>,
    // After all that uses it.
    _library: Library,
}

// librdkafka may be called from any thread.
unsafe impl Send for Consumer {}
unsafe impl Sync for Consumer {}

impl Consumer {
    pub fn new(library: &str, settings: &[(String, String)], topic: &str) -> Result<Self, String> {
        let as_text = |error: libloading::Error| format!("{library}: {error}");
        let loaded = unsafe { Library::new(library) }.map_err(as_text)?;
        let functions = unsafe { Functions::of(&loaded) }.map_err(as_text)?;
        let last_error: Box<LastError> = Box::default();
        let topic = CString::new(topic).map_err(|error| error.to_string())?;
        let mut reason = [0 as c_char; ERROR_BYTES];
        unsafe {
            let conf = (functions.rd_kafka_conf_new)();
            for (name, value) in settings {
                let name = CString::new(name.as_str()).map_err(|error| error.to_string())?;
                let value = CString::new(value.as_str()).map_err(|error| error.to_string())?;
                let set = (functions.rd_kafka_conf_set)(
                    conf,
                    name.as_ptr(),
                    value.as_ptr(),
                    reason.as_mut_ptr(),
                    ERROR_BYTES,
                );
                if set != CONF_OK {
                    (functions.rd_kafka_conf_destroy)(conf);
                    return Err(text_of(reason.as_ptr()));
                }
            }
            (functions.rd_kafka_conf_set_error_cb)(conf, note_error);
            (functions.rd_kafka_conf_set_opaque)(conf, &*last_error as *const LastError as *mut c_void);
            let handle = (functions.rd_kafka_new)(CONSUMER, conf, reason.as_mut_ptr(), ERROR_BYTES);
            if handle.is_null() {
                (functions.rd_kafka_conf_destroy)(conf);
                return Err(text_of(reason.as_ptr()));
            }
            (functions.rd_kafka_poll_set_consumer)(handle);
            let queue = (functions.rd_kafka_queue_get_consumer)(handle);
            Ok(Self { functions, handle, queue, topic, last_error, _library: loaded })
        }
    }

    /// Assign exactly these partitions, each from an offset on.
    pub fn assign(&self, starts: &[(i32, i64)]) -> Result<(), String> {
        self.with_list(starts, |list| match unsafe { (self.functions.rd_kafka_assign)(self.handle, list) } {
            0 => Ok(()),
            code => Err(text_of(unsafe { (self.functions.rd_kafka_err2str)(code) })),
        })
    }

    /// Fetch no more of a partition.
    pub fn unassign(&self, partition: i32) {
        self.with_list(&[(partition, 0)], |list| {
            let error = unsafe { (self.functions.rd_kafka_incremental_unassign)(self.handle, list) };
            if !error.is_null() {
                unsafe { (self.functions.rd_kafka_error_destroy)(error) };
            }
        });
    }

    fn with_list<T>(&self, starts: &[(i32, i64)], use_list: impl FnOnce(*const c_void) -> T) -> T {
        unsafe {
            let list = (self.functions.rd_kafka_topic_partition_list_new)(starts.len() as c_int);
            for (partition, offset) in starts {
                let added = (self.functions.rd_kafka_topic_partition_list_add)(list, self.topic.as_ptr(), *partition);
                (*added).offset = *offset;
            }
            let result = use_list(list);
            (self.functions.rd_kafka_topic_partition_list_destroy)(list);
            result
        }
    }

    /// Pass at most `most` messages on; wait for the first one. Returns how many there were.
    pub fn messages(&self, most: usize, milliseconds: i32, mut take: impl FnMut(&View)) -> usize {
        let mut found: Vec<*mut Message> = Vec::with_capacity(most);
        unsafe {
            let count =
                (self.functions.rd_kafka_consume_batch_queue)(self.queue, milliseconds, found.as_mut_ptr(), most);
            found.set_len(count.max(0) as usize);
            for message in &found {
                take(&View { consumer: self, message: &**message });
                (self.functions.rd_kafka_message_destroy)(*message);
            }
        }
        found.len()
    }

    /// The newest error of the client as a whole.
    pub fn last_error(&self) -> Option<(c_int, String)> {
        self.last_error.lock().ok().and_then(|last| last.clone())
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        unsafe {
            (self.functions.rd_kafka_queue_destroy)(self.queue);
            (self.functions.rd_kafka_destroy_flags)(self.handle, FLAG_NO_CONSUMER_CLOSE);
        }
    }
}

/// A message and its fields.
pub struct View<'a> {
    consumer: &'a Consumer,
    pub message: &'a Message,
}

impl View<'_> {
    pub fn key(&self) -> Option<&[u8]> {
        slice_of(self.message.key, self.message.key_len)
    }

    pub fn value(&self) -> Option<&[u8]> {
        slice_of(self.message.payload, self.message.len)
    }

    pub fn error_text(&self) -> String {
        text_of(unsafe { (self.consumer.functions.rd_kafka_message_errstr)(self.message) })
    }

    /// Milliseconds since 1970; None for a record without a timestamp.
    pub fn timestamp(&self) -> Option<i64> {
        let mut kind = NO_TIMESTAMP;
        let time = unsafe { (self.consumer.functions.rd_kafka_message_timestamp)(self.message, &mut kind) };
        (kind != NO_TIMESTAMP && time >= 0).then_some(time)
    }

    /// Pass each header on, its name and value.
    pub fn headers(&self, mut take: impl FnMut(&[u8], Option<&[u8]>)) {
        let functions = &self.consumer.functions;
        let mut headers = std::ptr::null_mut();
        if unsafe { (functions.rd_kafka_message_headers)(self.message, &mut headers) } != 0 {
            return;
        }
        for index in 0.. {
            let (mut name, mut value, mut size) = (std::ptr::null(), std::ptr::null(), 0);
            let code = unsafe { (functions.rd_kafka_header_get_all)(headers, index, &mut name, &mut value, &mut size) };
            if code != 0 {
                return;
            }
            take(unsafe { CStr::from_ptr(name) }.to_bytes(), slice_of(value, size));
        }
    }
}

fn slice_of<'a>(start: *const u8, length: usize) -> Option<&'a [u8]> {
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, length) })
}
