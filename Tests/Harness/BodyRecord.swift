import NIOCore

/// What a reader does with the bytes of a body: keep them, compare them with an image, or count.
struct BodyRecorder {
    private(set) var byteCount = 0
    private(set) var isAsExpected = true
    private var kept: [UInt8]?
    private let expected: TestImage?

    /// A record that keeps every byte.
    static var keeping: BodyRecorder { BodyRecorder(kept: [], expected: nil) }

    /// A record that compares with an image, or only counts, and keeps nothing.
    static func comparing(_ image: TestImage?) -> BodyRecorder {
        BodyRecorder(kept: nil, expected: image)
    }

    private init(kept: [UInt8]?, expected: TestImage?) {
        self.kept = kept
        self.expected = expected
    }

    mutating func append(_ piece: ByteBuffer) {
        if let expected, isAsExpected { isAsExpected = expected.holds(piece, at: byteCount) }
        kept?.append(contentsOf: piece.readableBytesView)
        byteCount += piece.readableBytes
    }

    /// Writes what is known into a response.
    func finish(_ response: inout Response) {
        response.body = kept
        response.bodyByteCount = byteCount
        response.isAsExpected = isAsExpected
    }
}
