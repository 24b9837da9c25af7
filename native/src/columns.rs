//! Columns in the layout of Arrow, which `pyarrow.Array.from_buffers` takes over.

/// A column of bytes or texts: 32-bit offsets, content, and a validity bitmap.
pub struct Bytes {
    pub offsets: Vec<i32>,
    pub content: Vec<u8>,
    pub validity: Bitmap,
}

impl Default for Bytes {
    fn default() -> Self {
        Self { offsets: vec![0], content: Vec::new(), validity: Bitmap::default() }
    }
}

impl Bytes {
    pub fn push(&mut self, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.content.extend_from_slice(value);
        }
        self.offsets.push(self.content.len() as i32);
        self.validity.push(value.is_some());
    }
}

/// A bit for each element, the least significant first; set where there is a value.
#[derive(Default)]
pub struct Bitmap {
    pub bytes: Vec<u8>,
    pub nulls: usize,
    length: usize,
}

impl Bitmap {
    pub fn push(&mut self, is_valid: bool) {
        if self.length % 8 == 0 {
            self.bytes.push(0);
        }
        if is_valid {
            self.bytes[self.length / 8] |= 1 << (self.length % 8);
        } else {
            self.nulls += 1;
        }
        self.length += 1;
    }
}

/// Numbers with a validity bitmap.
#[derive(Default)]
pub struct Numbers {
    pub values: Vec<i64>,
    pub validity: Bitmap,
}

impl Numbers {
    pub fn push(&mut self, value: Option<i64>) {
        self.values.push(value.unwrap_or(0));
        self.validity.push(value.is_some());
    }
}

/// Lists of names and values.
pub struct Headers {
    pub offsets: Vec<i32>,
    pub validity: Bitmap,
    pub names: Bytes,
    pub values: Bytes,
}

impl Default for Headers {
    fn default() -> Self {
        Self { offsets: vec![0], validity: Bitmap::default(), names: Bytes::default(), values: Bytes::default() }
    }
}

impl Headers {
    /// Add a header to the record that `end_record` ends.
    pub fn push(&mut self, name: &[u8], value: Option<&[u8]>) {
        self.names.push(Some(String::from_utf8_lossy(name).as_bytes()));
        self.values.push(value);
    }

    pub fn end_record(&mut self) {
        let end = self.names.validity_length() as i32;
        self.validity.push(self.offsets.last() != Some(&end));
        self.offsets.push(end);
    }
}

impl Bytes {
    fn validity_length(&self) -> usize {
        self.offsets.len() - 1
    }
}

/// The fields of records, one element for each.
#[derive(Default)]
pub struct Records {
    pub keys: Bytes,
    pub values: Bytes,
    pub partitions: Vec<i32>,
    pub offsets: Vec<i64>,
    pub milliseconds: Numbers,
    pub headers: Headers,
}

impl Records {
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    pub fn bytes(&self) -> usize {
        self.values.content.len() + self.keys.content.len() + self.headers.values.content.len()
    }
}
