import Ground

/// The parser of the directory of an icon or cursor and of the headers of its images.
///
/// Decoders use the images' own headers, not the directory, so the largest size of either counts.
struct IconHeader: ImageHeaderParser {
    let format = ImageFormat.icon
    private(set) var neededRange = 0..<6
    /// The number of directory entries still to come; `nil` before the count was read.
    private var entries: Int?
    /// The offsets of the images not yet parsed.
    private var offsets: [Int] = []
    private var largest: PixelSize?

    /// The maximum number of images, more than any real icon has; it bounds the memory used.
    static let entriesMax = 256
    private static let entryBytes = 16
    /// The number of bytes parsed of an image: the signature of a PNG and the sides in its IHDR.
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
        // A side of 256 is stored as 0, because it does not fit into a byte.
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

    /// Requests the next image in order of offsets; several entries may point to the same image.
    private mutating func needNextImage() -> ImageHeaderOutcome? {
        guard let next = offsets.popLast() else { return .size(largest) }
        while offsets.last == next { offsets.removeLast() }
        guard next >= neededRange.upperBound else { return .unreadable }
        neededRange = next..<next + Self.imageBytes
        return nil
    }

    /// The images may lie beyond the end of the body, where no decoder finds them either.
    var endOfBodyOutcome: ImageHeaderOutcome {
        entries == 0 ? .size(largest) : .unreadable
    }
}

/// The parser of a BMP's information header, in all lengths that Windows and OS/2 define.
struct BitmapHeader: ImageHeaderParser {
    let format = ImageFormat.bmp
    let neededRange = 14..<14 + bytesCount

    /// The number of bytes that hold the sides, in the shortest and in the longer headers.
    static let bytesCount = 12

    func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        Self.read(field, inIcon: false)
    }

    /// Parses the first ``bytesCount`` bytes of an information header.
    ///
    /// In an icon the height includes its mask, which is as high as the image.
    static func read(_ field: Span<UInt8>, inIcon: Bool) -> ImageHeaderOutcome {
        let width: UInt32
        var height: UInt32
        switch field.little32(at: 0) {
        case 12:
            (width, height) = (UInt32(field.little16(at: 4)), UInt32(field.little16(at: 6)))
        case 16...64, 108, 124:
            width = field.little32(at: 4)
            guard width <= Int32.max else { return .unreadable }
            // A negative height means that the topmost row comes first.
            height = Int32(bitPattern: field.little32(at: 8)).magnitude
        default: return .unreadable
        }
        if inIcon { height = height / 2 + height % 2 }
        return .sides(width, height)
    }
}

/// The parser of a PNG's first chunk, IHDR (PNG, third edition, §11.2.1); the frames of an animated
/// PNG lie within its canvas.
struct PNGHeader: ImageHeaderParser {
    let format = ImageFormat.png
    let neededRange = 8..<24

    func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        Self.read(field)
    }

    /// Parses the 16 bytes after the signature.
    static func read(_ field: Span<UInt8>) -> ImageHeaderOutcome {
        guard field.big32(at: 0) == 13, field.hasPrefix(with: "IHDR", at: 4) else {
            return .unreadable
        }
        let (width, height) = (field.big32(at: 8), field.big32(at: 12))
        guard max(width, height) <= Int32.max else { return .unreadable }
        return .sides(width, height)
    }
}

/// The parser of a TIFF, which reads no size: the directory has no fixed position and mostly
/// follows the pixels.
struct TIFFHeader: ImageHeaderParser {
    let format = ImageFormat.tiff
    let neededRange = 0..<4

    func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? { .size(nil) }
}
