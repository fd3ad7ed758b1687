package import Ground

/// The head that clients get, rendered once when an answer is stored.
///
/// The lines are ordered so that each kind of answer is one slice that runs to the end:
///
///     HTTP/1.1 NNN Reason  ┐ whole
///     Content-Length: …    │
///     Content-Digest: …    │
///     Content-Type: …      │ ┐ partial: 206 of one range, 416
///     Content-Encoding: …  │ │ ┐ multipart: 206 of several ranges
///     Accept-Ranges: …     │ │ │
///     Date: …              │ │ │ ┐ notModified: 304 (RFC 9110 §15.4.5)
///     everything else      ┘ ┘ ┘ ┘
///
/// Every line ends in CRLF; there is no empty line at the end. Age, Cache-Status and Connection are
/// of each response and are appended then, and so is Date where the head has none.
package struct StoredHead: Hashable, Sendable {
    package private(set) var bytes: [UInt8] = []
    /// Status line and all fields of a 200.
    package var whole: Extent { from(0) }
    /// The fields for one range, without status line and Content-Length.
    package var partial: Extent { from(partialStart) }
    /// The fields for several ranges: Content-Type is missing too.
    package var multipart: Extent { from(multipartStart) }
    /// The fields of a 304.
    package var notModified: Extent { from(notModifiedStart) }
    /// The value of Content-Type, for the parts of several ranges; empty if there is none.
    package private(set) var contentType = Extent.empty
    /// The entity tag with quotes and `W/`; empty if there is none, or none that can be compared.
    package private(set) var entityTag = Extent.empty

    /// Where the slices begin.
    package private(set) var partialStart = 0
    package private(set) var multipartStart = 0
    package private(set) var notModifiedStart = 0

    /// A head that was rendered before, from what was kept of it.
    package init(
        rendered bytes: [UInt8], partialStart: Int, multipartStart: Int, notModifiedStart: Int,
        contentType: Extent, entityTag: Extent
    ) {
        self.bytes = bytes
        self.partialStart = partialStart
        self.multipartStart = multipartStart
        self.notModifiedStart = notModifiedStart
        self.contentType = contentType
        self.entityTag = entityTag
    }

    private func from(_ start: Int) -> Extent {
        Extent(start: start, count: bytes.count - start)
    }
}
