import Ground
import NIOCore
import Store
import Testing
import Tiers

@Suite("A body in transit")
struct BodyBufferTests {
    private func bytes(_ range: Range<Int>) -> ByteBuffer {
        ByteBuffer(bytes: range.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    }

    private func joined(_ slices: [ByteBuffer]) -> [UInt8] {
        slices.flatMap { Array($0.readableBytesView) }
    }

    @Test(
        "Any range reads the same and the chunks hold the whole, whatever the sizes of the pieces",
        arguments: UInt64(1)...12)
    func partsAndWhole(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let size = Int.random(in: 0...300_000, using: &dice)
        let whole = Array(bytes(0..<size).readableBytesView)
        var body = BodyBuffer(isRetained: true)
        var received = 0
        while received < size {
            let largest = [3, 700, 70_000].randomElement(using: &dice) ?? 1
            let count = min(size - received, Int.random(in: 1...largest, using: &dice))
            body.append(bytes(received..<received + count))
            received += count
            let from = Int.random(in: 0..<received, using: &dice)
            let length = Int.random(in: 0...min(100_000, received - from), using: &dice)
            var slices: [ByteBuffer] = []
            body.appendSlices(from: UInt64(from), count: length, to: &slices)
            #expect(joined(slices) == Array(whole[from..<from + length]))
        }
        #expect(body.endOffset == UInt64(size))
        let chunks = body.finish()
        #expect(joined(chunks ?? []) == whole)
        #expect(chunks?.reduce(0) { $0 + $1.capacity } == BodyLayout.capacity(UInt64(size)))
    }

    @Test("A body that is not stored keeps the bytes from the mark on and none before it")
    func window() {
        var body = BodyBuffer(isRetained: false)
        for start in stride(from: 0, to: 1_000, by: 100) { body.append(bytes(start..<start + 100)) }
        body.discard(below: 450)
        var slices: [ByteBuffer] = []
        body.appendSlices(from: 450, count: 550, to: &slices)
        #expect(joined(slices) == Array(bytes(450..<1_000).readableBytesView))
        #expect(body.finish() == nil)
    }

    @Test("A body that is no longer stored releases its chunks one by one")
    func chunksGoOneByOne() {
        var body = BodyBuffer(isRetained: true)
        body.append(bytes(0..<1 << 20))
        body.stopRetaining()
        for start in 0..<100 { body.append(bytes((1 << 20) + start..<(1 << 20) + start + 1)) }
        body.discard(below: 1 << 19)
        #expect(body.heldBytes <= (1 << 19) + 100)
        #expect(body.heldBytes >= 1 << 19)
        body.discard(below: (1 << 20) + 50)
        #expect(body.heldBytes <= 100)
        var slices: [ByteBuffer] = []
        body.appendSlices(from: (1 << 20) + 50, count: 50, to: &slices)
        #expect(joined(slices) == Array(bytes((1 << 20) + 50..<(1 << 20) + 100).readableBytesView))
    }

    @Test("A body that is no longer stored continues at its offset")
    func stopKeeping() {
        var body = BodyBuffer(isRetained: true)
        let whole = bytes(0..<200_000)
        body.append(whole)
        body.stopRetaining()
        body.append(bytes(200_000..<200_500))
        #expect(body.endOffset == 200_500)
        var slices: [ByteBuffer] = []
        body.appendSlices(from: 65_000, count: 135_500, to: &slices)
        #expect(joined(slices) == Array(bytes(65_000..<200_500).readableBytesView))
        body.discard(below: 199_000)
        slices = []
        body.appendSlices(from: 199_000, count: 1_500, to: &slices)
        #expect(joined(slices) == Array(bytes(199_000..<200_500).readableBytesView))
    }

    @Test(
        "The tail has at most three powers of two and wastes little",
        arguments: [
            (0, []), (1, [64]), (64, [64]), (65, [128]), (1_024, [1_024]),
            (10_240, [8_192, 2_048]),
            (36_864, [32_768, 4_096]), (40_000, [32_768, 4_096, 4_096]), (65_535, [65_536]),
        ] as [(Int, [Int])])
    func tail(bytes: Int, pieces: [Int]) {
        #expect(BodyLayout.tail(bytes) == pieces)
    }

    @Test("No tail wastes more than a quarter of its size or 256 bytes")
    func everyTail() {
        for bytes in 0..<BodyLayout.chunkBytes {
            let pieces = BodyLayout.tail(bytes)
            let capacity = pieces.reduce(0, +)
            #expect(capacity >= bytes)
            #expect(capacity - bytes <= max(256, bytes / 4), "\(bytes) in \(pieces)")
            #expect(pieces.count <= 3)
            #expect(pieces.allSatisfy { $0 & ($0 - 1) == 0 })
        }
    }
}
