import Ground

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
