import Ground

/// The sizes that an AVIF or HEIF names: of its items in `meta`, or of its tracks in `moov` if it
/// is a sequence (ISO/IEC 14496-12, 23008-12 §6.5.3; AV1 Image File Format §8).
///
/// The largest counts. An image that is a grid of tiles has an item of its own with the size of the
/// whole.
struct MediaFileHeader: ImageHeader {
    private(set) var wanted = 0..<8
    private var brands = Brands()
    private var state = State.box
    /// The boxes that are being read, the innermost last.
    private var open: [Box] = []
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

    func isOf(_ declared: ImageFormat) -> Bool {
        declared == .avif && brands.isAVIF || declared == .heif && brands.isHEIF
    }

    mutating func take(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        switch state {
        case .box: return takeBox(field)
        case .longBox(let type):
            let length = field.big64(at: 0)
            guard length >= 16, length <= Self.bytesMax else { return .unreadable }
            return enter(type, end: wanted.lowerBound - 8 + Int(length))
        case .majorBrand:
            brands.add(field, isMajor: true)
            return wantBrand()
        case .brand:
            brands.add(field, isMajor: false)
            return wantBrand()
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

    private mutating func takeBox(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        let type = type(of: field)
        switch field.big32(at: 0) {
        // To the end of the file, or of what holds it.
        case 0: return enter(type, end: open.last?.end ?? .max)
        case 1:
            state = .longBox(type)
            wanted = wanted.upperBound..<wanted.upperBound + 8
            return nil
        case 2..<8: return .unreadable
        case let length: return enter(type, end: wanted.lowerBound + Int(length))
        }
    }

    /// What a box with this head is where it stands.
    private func type(of field: Span<UInt8>) -> BoxType {
        switch open.last?.type {
        case nil:
            if wanted.lowerBound == 0 { return .fileType }
            if field.begins(with: "meta", at: 4) { return .meta }
            return field.begins(with: "moov", at: 4) && brands.isSequence ? .movie : .other
        case .meta: return field.begins(with: "iprp", at: 4) ? .properties : .other
        case .properties: return field.begins(with: "ipco", at: 4) ? .propertyContainer : .other
        case .propertyContainer: return field.begins(with: "ispe", at: 4) ? .itemSize : .other
        case .movie: return field.begins(with: "trak", at: 4) ? .track : .other
        case .track: return field.begins(with: "tkhd", at: 4) ? .trackHeader : .other
        case .fileType, .itemSize, .trackHeader, .other: return .other
        }
    }

    /// Goes into a box whose head was read, or passes over it.
    private mutating func enter(_ type: BoxType, end: Int) -> ImageHeaderOutcome? {
        let start = wanted.upperBound
        guard end >= start, end <= open.last?.end ?? .max else { return .unreadable }
        open.append(Box(type: type, end: end))
        switch type {
        case .fileType:
            guard end - start >= 8 else { return .foreign }
            state = .majorBrand
            wanted = start..<start + 8
        // Version and flags come before the boxes in it.
        case .meta: return wantBox(start + 4)
        case .properties, .propertyContainer, .movie, .track: return wantBox(start)
        case .itemSize:
            guard end - start >= 12 else { return .unreadable }
            state = .itemSize
            wanted = start..<start + 12
        case .trackHeader:
            guard end - start >= 84, end != .max else { return .unreadable }
            state = .trackSize
            wanted = end - 8..<end
        case .other: return leave()
        }
        return nil
    }

    private mutating func wantBrand() -> ImageHeaderOutcome? {
        guard let end = open.last?.end, end - wanted.upperBound >= 4 else {
            return brands.isImage ? leave() : .foreign
        }
        state = .brand
        wanted = wanted.upperBound..<wanted.upperBound + 4
        return nil
    }

    /// Wants the head of a box at `start`, or leaves a box that has none there.
    private mutating func wantBox(_ start: Int) -> ImageHeaderOutcome? {
        if let end = open.last?.end, start >= end { return leave() }
        guard start < Int.max - 16 else { return .unreadable }
        state = .box
        wanted = start..<start + 8
        return nil
    }

    /// Goes on behind the innermost box.
    private mutating func leave() -> ImageHeaderOutcome? {
        guard let box = open.popLast() else { return .unreadable }
        // A sequence shows its tracks, anything else its items.
        if box.type == .movie || box.type == .meta && !brands.isSequence {
            return largest.map { .size($0) } ?? .unreadable
        }
        return wantBox(box.end)
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
        if Self.avif.contains(where: { brand.begins(with: $0) }) { isAVIF = true }
        // Servers mix the types of the family up, so all of its brands are one.
        if Self.heif.contains(where: { brand.begins(with: $0) }) { isHEIF = true }
        if isMajor { isSequence = Self.sequences.contains { brand.begins(with: $0) } }
    }

    private static let avif = ["avif", "avis"]
    private static let heif = [
        "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1", "msf1",
    ]
    private static let sequences = ["avis", "hevc", "hevx", "hevm", "hevs", "msf1"]
}
