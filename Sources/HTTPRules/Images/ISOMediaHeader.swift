import Ground

/// The parser of the image sizes in an AVIF or HEIF: of the items in `meta`, or of the tracks in
/// `moov` for a sequence (ISO/IEC 14496-12, 23008-12 §6.5.3; AV1 Image File Format §8).
///
/// The largest size counts. An image that is a grid of tiles has an item with the size of the
/// whole.
struct ISOMediaHeader: ImageHeaderParser {
    private(set) var neededRange = 0..<8
    private var brands = Brands()
    private var state = State.box
    /// The boxes being parsed, the innermost last.
    private var openBoxes: [Box] = []
    private var largest: PixelSize?

    /// The maximum length of a box in bytes; a longer one is rejected.
    static let bytesMax: UInt64 = 1 << 48

    /// A box whose content is parsed, and the offset of its end.
    private struct Box {
        let type: BoxType
        let end: Int
    }

    /// The types of boxes.
    ///
    /// No parsed type can contain itself, so ``openBoxes`` stays short.
    private enum BoxType {
        case fileType
        /// Contains ``properties``.
        case meta
        /// Contains ``propertyContainer``.
        case properties
        /// Contains ``itemSize``.
        case propertyContainer
        case itemSize
        /// Contains ``track``.
        case movie
        /// Contains ``trackHeader``.
        case track
        case trackHeader
        /// A box that is skipped.
        case other
    }

    private enum State {
        /// Expects a box's length and type.
        case box
        /// Expects the 64-bit length that follows the box's type.
        case longBox(BoxType)
        /// Expects the major brand and a version.
        case majorBrand
        case brand
        /// Expects version, flags and the two sides in `ispe`.
        case itemSize
        /// Expects the two sides in `tkhd`, each with 16 fractional bits.
        case trackSize
    }

    var format: ImageFormat { brands.isAVIF ? .avif : .heif }

    func matches(_ declared: ImageFormat) -> Bool {
        declared == .avif && brands.isAVIF || declared == .heif && brands.isHEIF
    }

    mutating func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        switch state {
        case .box: return consumeBox(field)
        case .longBox(let type):
            let length = field.big64(at: 0)
            guard length >= 16, length <= Self.bytesMax else { return .unreadable }
            return enter(type, end: neededRange.lowerBound - 8 + Int(length))
        case .majorBrand:
            brands.add(field, isMajor: true)
            return needBrand()
        case .brand:
            brands.add(field, isMajor: false)
            return needBrand()
        case .itemSize:
            largest = .larger(
                largest, PixelSize(width: field.big32(at: 4), height: field.big32(at: 8)))
            return leave()
        case .trackSize:
            largest = .larger(
                largest,
                PixelSize(width: field.big32(at: 0) >> 16, height: field.big32(at: 4) >> 16))
            return leave()
        }
    }

    // MARK: Boxes

    private mutating func consumeBox(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        let type = type(of: field)
        switch field.big32(at: 0) {
        // The box reaches to the end of the file or of the box that contains it.
        case 0: return enter(type, end: openBoxes.last?.end ?? .max)
        case 1:
            state = .longBox(type)
            neededRange = neededRange.upperBound..<neededRange.upperBound + 8
            return nil
        case 2..<8: return .unreadable
        case let length: return enter(type, end: neededRange.lowerBound + Int(length))
        }
    }

    /// Returns the type of the box with this head, given the box that contains it.
    private func type(of field: Span<UInt8>) -> BoxType {
        switch openBoxes.last?.type {
        case nil:
            if neededRange.lowerBound == 0 { return .fileType }
            if field.hasPrefix(with: "meta", at: 4) { return .meta }
            return field.hasPrefix(with: "moov", at: 4) && brands.isSequence ? .movie : .other
        case .meta: return field.hasPrefix(with: "iprp", at: 4) ? .properties : .other
        case .properties: return field.hasPrefix(with: "ipco", at: 4) ? .propertyContainer : .other
        case .propertyContainer: return field.hasPrefix(with: "ispe", at: 4) ? .itemSize : .other
        case .movie: return field.hasPrefix(with: "trak", at: 4) ? .track : .other
        case .track: return field.hasPrefix(with: "tkhd", at: 4) ? .trackHeader : .other
        case .fileType, .itemSize, .trackHeader, .other: return .other
        }
    }

    /// Enters a box whose head was read, or skips it.
    private mutating func enter(_ type: BoxType, end: Int) -> ImageHeaderOutcome? {
        let start = neededRange.upperBound
        guard end >= start, end <= openBoxes.last?.end ?? .max else { return .unreadable }
        openBoxes.append(Box(type: type, end: end))
        switch type {
        case .fileType:
            guard end - start >= 8 else { return .otherFormat }
            state = .majorBrand
            neededRange = start..<start + 8
        // Version and flags precede the boxes inside.
        case .meta: return needBox(start + 4)
        case .properties, .propertyContainer, .movie, .track: return needBox(start)
        case .itemSize:
            guard end - start >= 12 else { return .unreadable }
            state = .itemSize
            neededRange = start..<start + 12
        case .trackHeader:
            guard end - start >= 84, end != .max else { return .unreadable }
            state = .trackSize
            neededRange = end - 8..<end
        case .other: return leave()
        }
        return nil
    }

    /// Requests the next brand; after the last, leaves `ftyp` if one was that of an image.
    private mutating func needBrand() -> ImageHeaderOutcome? {
        guard let end = openBoxes.last?.end, end - neededRange.upperBound >= 4 else {
            return brands.isImage ? leave() : .otherFormat
        }
        state = .brand
        neededRange = neededRange.upperBound..<neededRange.upperBound + 4
        return nil
    }

    /// Requests the head of a box at `start`, or leaves the containing box if that ends there.
    private mutating func needBox(_ start: Int) -> ImageHeaderOutcome? {
        if let end = openBoxes.last?.end, start >= end { return leave() }
        guard start < Int.max - 16 else { return .unreadable }
        state = .box
        neededRange = start..<start + 8
        return nil
    }

    /// Continues after the innermost box, or ends with the largest size if that box held all sizes
    /// that count.
    private mutating func leave() -> ImageHeaderOutcome? {
        guard let box = openBoxes.popLast() else { return .unreadable }
        // A sequence is shown by its tracks, any other file by its items.
        if box.type == .movie || box.type == .meta && !brands.isSequence {
            return largest.map { .size($0) } ?? .unreadable
        }
        return needBox(box.end)
    }
}

/// The formats that a file's brands identify.
private struct Brands {
    private(set) var isAVIF = false
    private(set) var isHEIF = false
    /// True if the major brand is that of an image sequence.
    private(set) var isSequence = false

    var isImage: Bool { isAVIF || isHEIF }

    mutating func add(_ brand: Span<UInt8>, isMajor: Bool) {
        if Self.avif.contains(where: { brand.hasPrefix(with: $0) }) { isAVIF = true }
        // Servers confuse the types of the family, so all of its brands are treated as one.
        if Self.heif.contains(where: { brand.hasPrefix(with: $0) }) { isHEIF = true }
        if isMajor { isSequence = Self.sequences.contains { brand.hasPrefix(with: $0) } }
    }

    private static let avif = ["avif", "avis"]
    private static let heif = [
        "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1", "msf1",
    ]
    private static let sequences = ["avis", "hevc", "hevx", "hevm", "hevs", "msf1"]
}
