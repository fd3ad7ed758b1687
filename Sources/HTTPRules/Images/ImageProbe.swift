import Ground

/// Determines the format and size of an image from the first bytes of its body, as they arrive.
///
/// Nothing is decoded, and only the field being parsed is buffered: some dozens of bytes. The
/// result does not depend on how the body is split, and does not change once it is known.
package struct ImageProbe: Sendable {
    /// The maximum number of bytes that a header may extend over.
    ///
    /// The colour profiles of JPEGs for print have half a megabyte and more and precede the frame
    /// header; so do previews and depth maps. Bytes are buffered until the result is known, so this
    /// also limits the memory that an origin can make a fetch use.
    package static let bytesMax = 2 << 20

    /// The result so far; ``ImageProbeResult/needsMore`` until it is known.
    package private(set) var result = ImageProbeResult.needsMore
    private let declared: ImageFormat?
    /// The first bytes, until the format is known.
    private var start: [UInt8] = []
    private var header: (any ImageHeaderParser)?
    /// The offset of the next byte in the body.
    private var position = 0
    /// The bytes received so far of the range that the header requires.
    private var field: [UInt8] = []

    /// Creates a probe for the body of a response; one with a content coding is not examined.
    package init(_ head: ResponseHead) {
        let bytes = head.bytes.span
        declared = head.first(.contentType).flatMap { type in
            ImageFormat(bytes, type: ImageMediaTypes.essence(bytes, at: type.range))
        }
        if Self.hasContentCoding(head) { result = .unknown }
    }

    /// Returns true if `head` is that of a raster image with a content coding such as gzip, so that
    /// its first bytes do not show the format.
    ///
    /// SVG is text, which is often served with a coding, and has no size in pixels to check.
    package static func isCodedRaster(_ head: ResponseHead) -> Bool {
        guard hasContentCoding(head), let type = head.first(.contentType) else { return false }
        let bytes = head.bytes.span
        let essence = ImageMediaTypes.essence(bytes, at: type.range)
        return ImageMediaTypes.isImage(bytes, at: essence)
            && ImageFormat(bytes, type: essence)?.isRaster != false
    }

    /// Returns true if Content-Encoding names a coding other than `identity` (RFC 9110 §12.5.3).
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

    /// Examines the next bytes of the body.
    package mutating func consume(_ bytes: Span<UInt8>) {
        guard result == .needsMore else { return }
        guard header == nil else { return read(bytes) }
        let taken = min(ImageSignature.bytesCount - start.count, bytes.count)
        start += bytes.copy(0..<taken)
        guard start.count == ImageSignature.bytesCount else { return }
        selectHeader()
        read(bytes.extracting(taken..<bytes.count))
    }

    /// Ends the body; ``result`` is final afterwards.
    package mutating func finish() {
        guard result == .needsMore else { return }
        if header == nil { selectHeader() }
        guard result == .needsMore, let header else { return }
        apply(header.endOfBodyOutcome)
    }

    /// Chooses the parser and passes it the first bytes.
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

    /// Passes the parser each range that it requires and buffers an incomplete one.
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

    /// Sets the result by the outcome and the declared type, and drops the parser.
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

/// The result of examining the first bytes of a body.
package enum ImageProbeResult: Hashable, Sendable {
    /// More bytes are required.
    case needsMore
    /// The body is an image of its declared type, or of a known format while its declared type is
    /// unknown.
    case image(ImageMetadata)
    /// The body does not match its declared type; with metadata if it is an image of another
    /// format.
    case typeMismatch(ImageMetadata?)
    /// The body begins as its type requires, but its size cannot be read.
    ///
    /// It is truncated, damaged, has no pixels, or its header exceeds the limit.
    case unreadable
    /// The declared type and the first bytes are of no known format, or the body has a content
    /// coding.
    case unknown

    /// The metadata of the image, if the result has any.
    package var metadata: ImageMetadata? {
        switch self {
        case .image(let facts): facts
        case .typeMismatch(let facts): facts
        case .needsMore, .unreadable, .unknown: nil
        }
    }
}

/// The format and size in an image's header.
package struct ImageMetadata: Hashable, Sendable {
    /// The format of the image.
    package var format: ImageFormat
    /// The size in pixels; `nil` for a format without one (SVG) or with one that may be at the end
    /// of the file (TIFF).
    package var size: PixelSize?

    /// Creates metadata from its parts.
    package init(format: ImageFormat, size: PixelSize?) {
        self.format = format
        self.size = size
    }
}
