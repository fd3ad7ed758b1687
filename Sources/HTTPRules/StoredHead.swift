package import Ground

/// The head that clients get, rendered once when an answer is stored.
///
/// The lines are ordered so that each kind of answer is one slice that runs to the end:
///
///     HTTP/1.1 200 OK           ┐ whole
///     content-length: …         │
///     content-type: …           │ ┐ partial: 206 of one range, 416
///     content-encoding: …       │ │ ┐ multipart: 206 of several ranges
///     x-content-type-options: … │ │ │ ┐ notModified: 304 (RFC 9110 §15.4.5)
///     etag: …                   │ │ │ │
///     cache-control: …          ┘ ┘ ┘ ┘
///
/// What guards browsers is in a 304 too: it updates what they hold, which may have come from
/// somewhere else (RFC 9111 §3.2). Of the origin no such field is passed on.
///
/// Every line ends in CRLF; there is no empty line at the end. Date, Age, Cache-Status and
/// Connection are of each response and are appended then. Names are in lower case, so that HTTP/2
/// may send the same bytes.
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

    /// The fields of an answer that are passed on and stored; all others end here.
    package static let passed: [FieldName] = [
        .contentType, .contentEncoding, .contentLanguage, .contentDisposition, .etag,
        .lastModified, .cacheControl, .expires, .vary,
    ]

    /// Renders the head of a 200 whose body has `size` bytes; nil leaves Content-Length out.
    ///
    /// Of a field that is no list the first line counts. What Connection nominates is left out (RFC
    /// 9110 §7.6.1).
    package init(_ head: AnswerHead, size: UInt64?) {
        bytes.reserveCapacity(head.bytes.count + 192)
        let nominated = Self.nominated(head)
        bytes.append(contentsOf: "HTTP/1.1 200 OK\r\n".utf8)
        if let size {
            bytes.append(contentsOf: "content-length: ".utf8)
            ASCII.append(size, to: &bytes)
            endLine()
        }
        partialStart = bytes.count
        let type = append(.contentType, of: head, isList: false, nominated)
        contentType = type ?? .empty
        multipartStart = bytes.count
        append(.contentEncoding, of: head, isList: true, nominated)
        append(.contentLanguage, of: head, isList: true, nominated)
        let danger = Danger(bytes.span, at: contentType)
        appendDisposition(of: head, nominated, danger)
        bytes.append(contentsOf: "accept-ranges: bytes\r\n".utf8)
        notModifiedStart = bytes.count
        appendGuards(danger)
        if let tag = append(.etag, of: head, isList: false, nominated),
            EntityTag(bytes.span, at: tag.range) != nil
        {
            entityTag = tag
        }
        append(.lastModified, of: head, isList: false, nominated)
        append(.cacheControl, of: head, isList: true, nominated)
        append(.expires, of: head, isList: false, nominated)
        append(.vary, of: head, isList: true, nominated)
    }

    /// What a browser might do with an answer that is opened by itself.
    private enum Danger {
        /// Show pixels.
        case none
        /// Show an image of a format that may hold scripts, or of one that is not known.
        case image
        /// Run whatever the operator's type makes of it.
        case document

        init(_ bytes: Span<UInt8>, at type: Extent) {
            let essence = ContentTypes.essence(bytes, at: type.range)
            if ImageFormat(bytes, type: essence)?.isRaster == true {
                self = .none
            } else {
                self = ContentTypes.isImage(bytes, at: essence) ? .image : .document
            }
        }
    }

    /// The fields that keep a browser from taking an answer for something else, and from running
    /// it.
    private mutating func appendGuards(_ danger: Danger) {
        bytes.append(contentsOf: "x-content-type-options: nosniff\r\n".utf8)
        guard danger != .none else { return }
        // An SVG opened by itself is a document, and may hold scripts.
        bytes.append(
            contentsOf:
                "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; sandbox"
                .utf8)
        endLine()
    }

    /// The origin's Content-Disposition (RFC 6266), but of a document always `attachment`: it is
    /// not shown as a page of this host, but saved, under the name that the origin gives it.
    private mutating func appendDisposition(
        of head: AnswerHead, _ nominated: FieldSet, _ danger: Danger
    ) {
        guard danger == .document else {
            append(.contentDisposition, of: head, isList: false, nominated)
            return
        }
        bytes.append(contentsOf: "content-disposition: attachment".utf8)
        if let value = head.first(.contentDisposition), !nominated.contains(.contentDisposition) {
            let span = head.bytes.span
            let end = FieldSyntax.find(UInt8(ascii: ";"), in: span, at: value.range)
            bytes.append(contentsOf: head.bytes[end..<value.end])
        }
        endLine()
    }

    /// Appends the first line, or all, of this name; answers where the first value lies.
    @discardableResult
    private mutating func append(
        _ name: FieldName, of head: AnswerHead, isList: Bool, _ nominated: FieldSet
    ) -> Extent? {
        if nominated.contains(name) { return nil }
        var first: Extent?
        for line in head.lines where line.id == name {
            if first != nil, !isList { break }
            bytes.append(contentsOf: name.text.description.utf8)
            bytes.append(contentsOf: ": ".utf8)
            let start = bytes.count
            bytes.append(contentsOf: head.bytes[line.value.range])
            if first == nil { first = Extent(start: start, count: bytes.count - start) }
            endLine()
        }
        return first
    }

    private mutating func endLine() {
        bytes.append(0x0D)
        bytes.append(0x0A)
    }

    /// The known fields that the lines of Connection name.
    static func nominated(_ head: AnswerHead) -> FieldSet {
        var set = FieldSet()
        let bytes = head.bytes.span
        for line in head.lines where line.id == .connection {
            var cursor = line.value.range.lowerBound
            while let element = FieldSyntax.nextElement(
                bytes, at: line.value.range, cursor: &cursor)
            {
                set.insert(FieldName(bytes, at: element))
            }
        }
        return set
    }
}
