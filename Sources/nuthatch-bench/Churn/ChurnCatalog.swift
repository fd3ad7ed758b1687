import Glibc
import Ground
import Harness
import NIOCore
import Synchronization

/// The images of a site whose content changes all the time: a number of slots by popularity, each
/// with an image that replaces the previous one.
///
/// An image is derived from its slot and generation, so that origin and clients agree without
/// communication.
final class ChurnCatalog: Sendable {
    private let generations: Mutex<[UInt32]>
    /// The cumulative popularity of the slots (Zipf, exponent 0.9).
    private let popularity: [Double]
    /// The bytes that bodies are cut from.
    private let noise: ByteBuffer
    private let seed: UInt64

    private static let noiseBytes = 6 << 20

    init(slots: Int, seed: UInt64) {
        self.seed = seed
        generations = Mutex(Array(repeating: 0, count: slots))
        var sum = 0.0
        popularity = (0..<slots).map { place in
            sum += 1 / pow(Double(place + 1), 0.9)
            return sum
        }
        var dice = SplitMix64(seed: seed)
        var noise = ByteBuffer()
        for _ in 0..<Self.noiseBytes / 8 { noise.writeInteger(dice.next()) }
        self.noise = noise
    }

    /// Replaces the images in `count` random slots.
    func replaceRandomImages(_ count: Int, using dice: inout SplitMix64) {
        generations.withLock { generations in
            for _ in 0..<count {
                generations[Int.random(in: generations.indices, using: &dice)] += 1
            }
        }
    }

    /// Returns an image at random, by popularity.
    func popular(using dice: inout SplitMix64) -> ChurnImage {
        let wanted = Double.random(in: 0..<(popularity.last ?? 1), using: &dice)
        return image(popularity.partitionPoint { $0 < wanted })
    }

    /// Returns a random image of at least `bytes`, or the last one tried after some attempts.
    func large(_ bytes: Int, using dice: inout SplitMix64) -> ChurnImage {
        var image = popular(using: &dice)
        for _ in 0..<10_000 where image.bytes < bytes {
            image = self.image(Int.random(in: popularity.indices, using: &dice))
        }
        return image
    }

    private func image(_ place: Int) -> ChurnImage {
        generations.withLock { ChurnImage(place: place, generation: $0[place], seed: seed) }
    }

    /// Returns the image of a path, whether its generation is the current one or not; `nil` if the
    /// path names no slot.
    func image(atPath path: Substring) -> ChurnImage? {
        let parts = path.dropFirst(3).split(separator: ".")
        guard path.hasPrefix("/i/"), parts.count == 2, let place = Int(parts[0]),
            let generation = UInt32(parts[1]), popularity.indices.contains(place)
        else { return nil }
        return ChurnImage(place: place, generation: generation, seed: seed)
    }

    /// Returns the content of an image, without copying the noise.
    func body(of image: ChurnImage) -> TestImage {
        let count = image.bytes - ChurnImage.head.readableBytes - ChurnImage.tail.readableBytes
        let filling = noise.getSlice(at: image.noiseStart(of: Self.noiseBytes), length: count)
        return TestImage(
            name: image.path, contentType: "image/png",
            pieces: [ChurnImage.head, filling ?? ByteBuffer(), ChurnImage.tail])
    }

    /// Returns the response of an origin that has all images.
    func response(_ request: OriginRequest) -> OriginResponse {
        guard let image = image(atPath: request.path[...]) else {
            return .text("no such image", status: "404 Not Found")
        }
        let fields = [
            "ETag: \"\(image.slot).\(image.generation)\"",
            "Cache-Control: max-age=\(image.isShortLived ? 2 : 86_400)",
        ]
        // The path names the generation, so that a client's copy is current.
        return request.isConditional
            ? .notModified(fields) : OriginResponse(body(of: image), fields: fields)
    }
}

/// An image: the beginning and end of a PNG, with noise between.
struct ChurnImage: Sendable {
    let slot: Int
    let generation: UInt32
    /// The length of the body: 200 bytes to 5 MB, half below 3.3 KB, 60 KB on average.
    let bytes: Int
    private let randomBits: UInt64

    /// The signature and header of a true-colour image with 100 × 100 pixels.
    static let head = ByteBuffer(bytes: [
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 100, 0, 0, 0, 100,
        8, 2, 0, 0, 0, 255, 128, 2, 3,
    ])
    /// The last chunk.
    static let tail = ByteBuffer(bytes: [0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130])
    static let bytesMax = 5_000_000

    init(place: Int, generation: UInt32, seed: UInt64) {
        self.slot = place
        self.generation = generation
        var dice = SplitMix64(seed: seed ^ UInt64(place) << 32 ^ UInt64(generation))
        let (low, high): (Double, Double) =
            switch Int.random(in: 0..<100, using: &dice) {
            case ..<70: (200, 10_000)
            case ..<95: (10_000, 100_000)
            case ..<99: (100_000, 1_000_000)
            default: (1_000_000, Double(Self.bytesMax))
            }
        bytes = Int(low * pow(high / low, Double.random(in: 0..<1, using: &dice)))
        randomBits = dice.next()
    }

    var path: String { "/i/\(slot).\(generation)" }

    /// True for images that are fresh for two seconds only, so that they are revalidated.
    var isShortLived: Bool { randomBits % 16 == 0 }

    func noiseStart(of noiseBytes: Int) -> Int {
        Int(randomBits >> 8) % (noiseBytes - Self.bytesMax)
    }
}
