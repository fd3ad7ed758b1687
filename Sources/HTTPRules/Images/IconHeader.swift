import Ground

/// The directory of an icon or a cursor, and the headers of the images it points to.
///
/// A decoder believes the images and not the directory, so the largest of either counts.
struct IconHeader: ImageHeaderParser {
    let format = ImageFormat.icon
    private(set) var neededRange = 0..<6
    /// Directory entries that are still to come.
    private var entries: Int?
    /// Where the images begin that were not looked at.
    private var offsets: [Int] = []
    private var largest: PixelSize?

    /// More images than any icon has that is meant to be shown; what is held grows with it.
    static let entriesMax = 256
    private static let entryBytes = 16
    /// Bytes of an image that are looked at: the signature of a PNG and the sides in its IHDR.
    private static let imageBytes = 24

    mutating func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        guard let left = entries else { return consumeCount(Int(field.little16(at: 4))) }
        if left > 0 { return consumeEntry(field, left: left - 1) }
        let image =
            field.hasPrefix(with: ImageSignature.png)
            ? PNGHeader.read(field.extracting(8..<24)) : BitmapHeader.read(field, inIcon: true)
        guard case .size(let size) = image else { return .unreadable }
        largest = .larger(largest, size)
        return needNextImage()
    }

    private mutating func consumeCount(_ count: Int) -> ImageHeaderOutcome? {
        guard count > 0, count <= Self.entriesMax else { return .unreadable }
        entries = count
        neededRange = 6..<6 + Self.entryBytes
        return nil
    }

    private mutating func consumeEntry(
        _ field: Span<UInt8>, left: Int
    ) -> ImageHeaderOutcome? {
        // Of a side of 256 the byte has no room for the highest bit.
        let width = field[0] == 0 ? 256 : UInt32(field[0])
        let height = field[1] == 0 ? 256 : UInt32(field[1])
        largest = .larger(largest, PixelSize(width: width, height: height))
        offsets.append(Int(field.little32(at: 12)))
        entries = left
        guard left == 0 else {
            neededRange = neededRange.upperBound..<neededRange.upperBound + Self.entryBytes
            return nil
        }
        offsets.sort(by: >)
        return needNextImage()
    }

    /// Wants the next image, in the order of their places; several entries may point to one.
    private mutating func needNextImage() -> ImageHeaderOutcome? {
        guard let next = offsets.popLast() else { return .size(largest) }
        while offsets.last == next { offsets.removeLast() }
        guard next >= neededRange.upperBound else { return .unreadable }
        neededRange = next..<next + Self.imageBytes
        return nil
    }

    /// The images may lie behind the body's end, where no decoder finds them either.
    var endOfBodyOutcome: ImageHeaderOutcome {
        entries == 0 ? .size(largest) : .unreadable
    }
}
