import Ground

/// Reads the kind and the size of an image from the first bytes of its body, as they arrive.
///
/// Nothing is decoded, and only what is being looked at is held: some dozens of bytes. However the
/// body is cut into pieces, the finding is the same, and once there it stays.
package struct ImageProbe: Sendable {
    /// A header that goes on behind so many bytes is not read.
    ///
    /// The colour profiles of JPEGs for print have half a megabyte and more, and stand before the
    /// frame header; so do previews and depth maps. What is given to no client meanwhile has to be
    /// held, so this is also what an origin can make a fetch hold.
    package static let bytesMax = 2 << 20

    package private(set) var result = ImageProbeResult.needsMore
    private let declared: ImageFormat?
    /// The first bytes, until it is known whose they are.
    private var start: [UInt8] = []
    private var header: (any ImageHeaderParser)?
    /// Offset of the byte that comes next.
    private var position = 0
    /// What came of the bytes that the header wants.
    private var field: [UInt8] = []

    /// A probe of the body of an answer; one that is coded is not looked into.
    package init(_ head: ResponseHead) {
        let bytes = head.bytes.span
        declared = head.first(.contentType).flatMap { type in
            ImageFormat(bytes, type: ImageMediaTypes.essence(bytes, at: type.range))
        }
        if Self.hasContentCoding(head) { result = .unknown }
    }

    /// True if `head` is that of an image of pixels under a coding, such as gzip, so that its first
    /// bytes do not tell what it is.
    ///
    /// SVG is text, which is served coded, and has no size in pixels to be judged by.
    package static func isCodedRaster(_ head: ResponseHead) -> Bool {
        guard hasContentCoding(head), let type = head.first(.contentType) else { return false }
        let bytes = head.bytes.span
        let essence = ImageMediaTypes.essence(bytes, at: type.range)
        return ImageMediaTypes.isImage(bytes, at: essence)
            && ImageFormat(bytes, type: essence)?.isRaster != false
    }

    /// True if Content-Encoding names a coding; `identity` is none (RFC 9110 §12.5.3).
    private static func hasContentCoding(_ head: ResponseHead) -> Bool {
        let bytes = head.bytes.span
        for line in head.lines where line.id == .contentEncoding {
            var cursor = line.value.range.lowerBound
            while let coding = FieldSyntax.nextElement(
                bytes, at: line.value.range, cursor: &cursor)
            {
                if !bytes.matchesIgnoringCase("identity", at: coding) { return true }
            }
        }
        return false
    }

    /// Takes in the next bytes of the body.
    package mutating func consume(_ bytes: Span<UInt8>) {
        guard result == .needsMore else { return }
        guard header == nil else { return read(bytes) }
        let taken = min(ImageSignature.bytesCount - start.count, bytes.count)
        start += bytes.copy(0..<taken)
        guard start.count == ImageSignature.bytesCount else { return }
        selectHeader()
        read(bytes.extracting(taken..<bytes.count))
    }

    /// The body has ended; there is a finding afterwards.
    package mutating func finish() {
        guard result == .needsMore else { return }
        if header == nil { selectHeader() }
        guard result == .needsMore, let header else { return }
        apply(header.endOfBodyOutcome)
    }

    /// Chooses the header to read and gives it the first bytes.
    private mutating func selectHeader() {
        header = ImageSignature.reader(start.span, isTypeKnown: declared != nil)
        if header == nil, declared == .svg { header = SVGHeader() }
        guard header != nil else {
            result = declared == nil ? .unknown : .typeMismatch(nil)
            return
        }
        let first = start
        start = []
        read(first.span)
    }

    private mutating func read(_ bytes: Span<UInt8>) {
        var index = 0
        while result == .needsMore, let wanted = header?.neededRange {
            guard wanted.upperBound <= Self.bytesMax else { return apply(.unreadable) }
            let passed = min(wanted.lowerBound + field.count - position, bytes.count - index)
            index += passed
            let taken = min(wanted.count - field.count, bytes.count - index)
            position += passed + taken
            guard taken > 0 else { return }
            let piece = bytes.extracting(index..<index + taken)
            index += taken
            let outcome: ImageHeaderOutcome?
            if taken == wanted.count {
                outcome = header?.consume(piece)
            } else {
                field += piece.copy(0..<taken)
                guard field.count == wanted.count else { return }
                let whole = field
                outcome = header?.consume(whole.span)
                field = []
            }
            if let outcome { apply(outcome) }
        }
    }

    private mutating func apply(_ outcome: ImageHeaderOutcome) {
        guard let header else { return }
        let isDeclared = declared.map { header.matches($0) } ?? false
        switch outcome {
        case .size(let size):
            let format = isDeclared ? declared ?? header.format : header.format
            let facts = ImageMetadata(format: format, size: size)
            result = isDeclared || declared == nil ? .image(facts) : .typeMismatch(facts)
        case .unreadable where isDeclared: result = .unreadable
        case .unreadable, .otherFormat: result = declared == nil ? .unknown : .typeMismatch(nil)
        }
        self.header = nil
    }
}

/// What the first bytes of a body tell of it.
package enum ImageProbeResult: Hashable, Sendable {
    /// Nothing yet.
    case needsMore
    /// It is an image of the kind that it claims to be, or of a known kind while its type is none.
    case image(ImageMetadata)
    /// It is not what its type says; with facts, if it is an image of another kind.
    case typeMismatch(ImageMetadata?)
    /// It begins as its type says, but its size cannot be read: it is cut, damaged, has no pixel,
    /// or keeps its header behind more bytes than are looked at.
    case unreadable
    /// Its type and its first bytes are of no known kind, or it is coded: there is nothing to be
    /// said.
    case unknown

    package var metadata: ImageMetadata? {
        switch self {
        case .image(let facts): facts
        case .typeMismatch(let facts): facts
        case .needsMore, .unreadable, .unknown: nil
        }
    }
}

/// What an image's header says.
package struct ImageMetadata: Hashable, Sendable {
    package var format: ImageFormat
    /// Nil for a format without a size in pixels (SVG), and for one whose size may stand at its end
    /// (TIFF).
    package var size: PixelSize?

    package init(format: ImageFormat, size: PixelSize?) {
        self.format = format
        self.size = size
    }
}
