package import Ground

extension EntryName {
    /// The name of the answer to a normalised URL that depends on nothing else: its SHA-256; or of
    /// what stands under a key that goes on behind a line feed, placed with the URL before it.
    package init(ofKey key: [UInt8]) {
        let whole = EntryName(sha256(key.span).span)
        guard let urlEnd = key.firstIndex(of: 0x0A) else {
            self = whole
            return
        }
        self = whole.colocated(with: EntryName(sha256(key.span.extracting(0..<urlEnd)).span))
    }
}
