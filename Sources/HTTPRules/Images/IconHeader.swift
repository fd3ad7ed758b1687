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

/// The information header of a BMP, in all the lengths that Windows and OS/2 have given it.
struct BitmapHeader: ImageHeaderParser {
    let format = ImageFormat.bmp
    let neededRange = 14..<14 + bytesCount

    /// Bytes that hold the sides, of the shortest header and of the others.
    static let bytesCount = 12

    func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        Self.read(field, inIcon: false)
    }

    /// Reads the first ``bytesCount`` bytes of an information header.
    ///
    /// In an icon the height counts its mask as well, which is as high as the image.
    static func read(_ field: Span<UInt8>, inIcon: Bool) -> ImageHeaderOutcome {
        let width: UInt32
        var height: UInt32
        switch field.little32(at: 0) {
        case 12:
            (width, height) = (UInt32(field.little16(at: 4)), UInt32(field.little16(at: 6)))
        case 16...64, 108, 124:
            width = field.little32(at: 4)
            guard width <= Int32.max else { return .unreadable }
            // A negative one begins with the topmost line.
            height = Int32(bitPattern: field.little32(at: 8)).magnitude
        default: return .unreadable
        }
        if inIcon { height = height / 2 + height % 2 }
        return .sides(width, height)
    }
}

/// The chunk IHDR of a PNG (PNG, third edition, §11.2.1), which comes first; the frames of an
/// animated one lie within its canvas.
struct PNGHeader: ImageHeaderParser {
    let format = ImageFormat.png
    let neededRange = 8..<24

    func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        Self.read(field)
    }

    /// Reads the first 16 bytes behind the signature.
    static func read(_ field: Span<UInt8>) -> ImageHeaderOutcome {
        guard field.big32(at: 0) == 13, field.hasPrefix(with: "IHDR", at: 4) else {
            return .unreadable
        }
        let (width, height) = (field.big32(at: 8), field.big32(at: 12))
        guard max(width, height) <= Int32.max else { return .unreadable }
        return .sides(width, height)
    }
}

/// A TIFF, whose directory stands at no fixed place, and mostly behind the pixels: nothing is read
/// of it.
struct TIFFHeader: ImageHeaderParser {
    let format = ImageFormat.tiff
    let neededRange = 0..<4

    func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? { .size(nil) }
}
