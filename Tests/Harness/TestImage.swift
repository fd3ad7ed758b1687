package import NIOCore

/// An image of a known type whose bytes can be had from any offset without being stored.
package struct TestImage: Sendable {
    /// A run of the image's bytes.
    enum Run: Sendable {
        /// Bytes given one by one.
        case bytes(ByteBuffer)
        /// `count` bytes of seeded noise from the given place of the noise's endless tape.
        case noise(Noise, at: Int, count: Int)

        var count: Int {
            switch self {
            case .bytes(let buffer): buffer.readableBytes
            case .noise(_, _, let count): count
            }
        }
    }

    /// What to call the image in messages and as last part of its URL; only unreserved characters.
    package let name: String
    /// Its media type.
    package let contentType: String
    /// Its size in bytes.
    package let byteCount: Int
    private let runs: [Run]

    init(name: String, contentType: String, runs: [Run]) {
        self.name = name
        self.contentType = contentType
        self.runs = runs
        byteCount = runs.reduce(0) { $0 + $1.count }
    }

    /// An image of exactly these bytes.
    package init(name: String, contentType: String, bytes: [UInt8]) {
        self.init(
            name: name, contentType: contentType, runs: [.bytes(ByteBuffer(bytes: bytes))])
    }

    /// An image that is these pieces one after the other, none of which is copied.
    package init(name: String, contentType: String, pieces: [ByteBuffer]) {
        self.init(name: name, contentType: contentType, runs: pieces.map { .bytes($0) })
    }

    /// All its bytes.
    package var bytes: [UInt8] { bytes(0..<byteCount) }

    /// The bytes of a range, which must lie within the image.
    package func bytes(_ range: Range<Int>) -> [UInt8] {
        slices(range).flatMap { Array($0.readableBytesView) }
    }

    /// The bytes of a range as slices of shared storage, none copied.
    func slices(_ range: Range<Int>) -> [ByteBuffer] {
        precondition(range.lowerBound >= 0 && range.upperBound <= byteCount)
        var slices: [ByteBuffer] = []
        var start = 0
        for run in runs {
            let part = range.clamped(to: start..<start + run.count)
            if !part.isEmpty {
                append(run, part.lowerBound - start..<part.upperBound - start, to: &slices)
            }
            start += run.count
        }
        return slices
    }

    private func append(_ run: Run, _ range: Range<Int>, to slices: inout [ByteBuffer]) {
        switch run {
        case .bytes(let buffer):
            let at = buffer.readerIndex + range.lowerBound
            guard let slice = buffer.getSlice(at: at, length: range.count) else { return }
            slices.append(slice)
        case .noise(let noise, let origin, _):
            noise.append(origin + range.lowerBound, count: range.count, to: &slices)
        }
    }

    /// Whether `piece` is what the image holds at `offset`.
    func holds(_ piece: ByteBuffer, at offset: Int) -> Bool {
        guard offset + piece.readableBytes <= byteCount else { return false }
        var rest = piece
        return slices(offset..<offset + piece.readableBytes).allSatisfy { slice in
            rest.readSlice(length: slice.readableBytes) == slice
        }
    }
}

extension TestImage: CustomStringConvertible {
    /// Its name and type.
    package var description: String { "\(name) (\(contentType), \(byteCount) bytes)" }
}
