import Ground

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
