import Ground

/// The sizes that an AVIF or HEIF names: of its items in `meta`, or of its tracks in `moov` if it
/// is a sequence (ISO/IEC 14496-12, 23008-12 §6.5.3; AV1 Image File Format §8).
///
/// The largest counts. An image that is a grid of tiles has an item of its own with the size of the
/// whole.
struct ISOMediaHeader: ImageHeaderParser {
    private(set) var neededRange = 0..<8
    private var brands = Brands()
    private var state = State.box
    /// The boxes that are being read, the innermost last.
    private var openBoxes: [Box] = []
    private var largest: PixelSize?

    /// No box is believed to be longer.
    static let bytesMax: UInt64 = 1 << 48

    /// A box of which the inside is read, and the offset of its end.
    private struct Box {
        let type: BoxType
        let end: Int
    }

    /// None of those that are entered can hold one of its own kind, so that ``open`` stays short.
    private enum BoxType {
        case fileType
        /// Holds ``properties``.
        case meta
        /// Holds ``propertyContainer``.
        case properties
        /// Holds ``itemSize``.
        case propertyContainer
        case itemSize
        /// Holds ``track``.
        case movie
        /// Holds ``trackHeader``.
        case track
        case trackHeader
        /// Passed over.
        case other
    }

    private enum State {
        /// A box's length and type.
        case box
        /// The length in eight bytes that follows them.
        case longBox(BoxType)
        /// The major brand, and a version.
        case majorBrand
        case brand
        /// The two sides of `ispe`, behind a version and flags.
        case itemSize
        /// The two sides of `tkhd`, each with 16 bits behind the point.
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
        // To the end of the file, or of what holds it.
        case 0: return enter(type, end: openBoxes.last?.end ?? .max)
        case 1:
            state = .longBox(type)
            neededRange = neededRange.upperBound..<neededRange.upperBound + 8
            return nil
        case 2..<8: return .unreadable
        case let length: return enter(type, end: neededRange.lowerBound + Int(length))
        }
    }

    /// What a box with this head is where it stands.
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

    /// Goes into a box whose head was read, or passes over it.
    private mutating func enter(_ type: BoxType, end: Int) -> ImageHeaderOutcome? {
        let start = neededRange.upperBound
        guard end >= start, end <= openBoxes.last?.end ?? .max else { return .unreadable }
        openBoxes.append(Box(type: type, end: end))
        switch type {
        case .fileType:
            guard end - start >= 8 else { return .otherFormat }
            state = .majorBrand
            neededRange = start..<start + 8
        // Version and flags come before the boxes in it.
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

    private mutating func needBrand() -> ImageHeaderOutcome? {
        guard let end = openBoxes.last?.end, end - neededRange.upperBound >= 4 else {
            return brands.isImage ? leave() : .otherFormat
        }
        state = .brand
        neededRange = neededRange.upperBound..<neededRange.upperBound + 4
        return nil
    }

    /// Wants the head of a box at `start`, or leaves a box that has none there.
    private mutating func needBox(_ start: Int) -> ImageHeaderOutcome? {
        if let end = openBoxes.last?.end, start >= end { return leave() }
        guard start < Int.max - 16 else { return .unreadable }
        state = .box
        neededRange = start..<start + 8
        return nil
    }

    /// Goes on behind the innermost box.
    private mutating func leave() -> ImageHeaderOutcome? {
        guard let box = openBoxes.popLast() else { return .unreadable }
        // A sequence shows its tracks, anything else its items.
        if box.type == .movie || box.type == .meta && !brands.isSequence {
            return largest.map { .size($0) } ?? .unreadable
        }
        return needBox(box.end)
    }
}

/// What the brands of a file say of it.
private struct Brands {
    private(set) var isAVIF = false
    private(set) var isHEIF = false
    /// The major brand is that of an image sequence.
    private(set) var isSequence = false

    var isImage: Bool { isAVIF || isHEIF }

    mutating func add(_ brand: Span<UInt8>, isMajor: Bool) {
        if Self.avif.contains(where: { brand.hasPrefix(with: $0) }) { isAVIF = true }
        // Servers mix the types of the family up, so all of its brands are one.
        if Self.heif.contains(where: { brand.hasPrefix(with: $0) }) { isHEIF = true }
        if isMajor { isSequence = Self.sequences.contains { brand.hasPrefix(with: $0) } }
    }

    private static let avif = ["avif", "avis"]
    private static let heif = [
        "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1", "msf1",
    ]
    private static let sequences = ["avis", "hevc", "hevx", "hevm", "hevs", "msf1"]
}
