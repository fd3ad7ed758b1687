import Ground
import HTTPRules
import Testing

/// The finding of a probe for a body of this type, after these pieces of it.
func probe(_ type: String, _ pieces: [[UInt8]], isEnd: Bool = false) -> ImageProbeResult {
    var probe = ImageProbe(ResponseHead(200, "Content-Type: \(type)"))
    for piece in pieces { probe.consume(piece.span) }
    if isEnd { probe.finish() }
    return probe.result
}

@Suite("Reading the size of an image from its first bytes")
struct ImageProbeTests {
    @Test("The size is read from each format's header", arguments: ImageSample.all)
    func size(sample: ImageSample) {
        let ended = sample.bytes + [UInt8](repeating: 0xFF, count: 40)
        #expect(probe(sample.type, [sample.bytes]) == .image(sample.facts))
        #expect(probe(sample.type, [ended], isEnd: true) == .image(sample.facts))
    }

    @Test(
        "A prefix of the header gives no result yet, and no wrong one", arguments: ImageSample.all)
    func beginnings(sample: ImageSample) {
        var wasFound = false
        for count in 0...sample.bytes.count {
            let finding = probe(sample.type, [Array(sample.bytes.prefix(count))])
            if finding == .image(sample.facts) { wasFound = true }
            #expect(finding == (wasFound ? .image(sample.facts) : .needsMore), "\(count) bytes")
        }
        #expect(wasFound)
    }

    @Test("A truncated body gives no other size", arguments: ImageSample.all)
    func cut(sample: ImageSample) {
        for count in 0..<sample.bytes.count {
            let finding = probe(
                sample.type, [Array(sample.bytes.prefix(count))], isEnd: true)
            #expect(finding != .needsMore, "\(count) bytes")
            // An icon's directory counts, even without the image.
            guard sample.facts.format != .icon, let facts = finding.metadata else { continue }
            #expect(facts == sample.facts, "\(count) bytes")
        }
    }

    @Test("The result does not depend on how the bytes are split", arguments: ImageSample.all)
    func pieces(sample: ImageSample) {
        for cut in 0...sample.bytes.count {
            let pieces = [Array(sample.bytes[..<cut]), [], Array(sample.bytes[cut...])]
            #expect(probe(sample.type, pieces) == .image(sample.facts), "cut at \(cut)")
        }
        #expect(probe(sample.type, sample.bytes.map { [$0] }) == .image(sample.facts))
    }

    @Test(
        "With the type of another format there is a contradiction, and the size is still known",
        arguments: ImageSample.all)
    func mislabelled(sample: ImageSample) {
        for type in ["image/tiff", "image/svg+xml"] where sample.facts.format != .svg {
            let finding = probe(type, [sample.bytes], isEnd: true)
            guard case .typeMismatch(let facts?) = finding else {
                Issue.record("\(type): \(finding)")
                continue
            }
            #expect(facts.size == sample.facts.size)
        }
        let page = probe("text/html", ["<html>".bytes], isEnd: true)
        #expect(page == .unknown)
    }

    @Test(
        "A body with a content coding is not probed", arguments: ["gzip", "br", "identity, gzip"])
    func coded(coding: String) {
        let head = ResponseHead(200, "Content-Type: image/png", "Content-Encoding: \(coding)")
        #expect(ImageProbe(head).result == .unknown)
        let plain = ResponseHead(200, "Content-Type: image/png", "Content-Encoding: identity")
        #expect(ImageProbe(plain).result == .needsMore)
    }

    @Test(
        "A pixel image with a content coding is a coded raster; text and SVG are not",
        arguments: [
            ("image/png", "gzip", true), ("IMAGE/JPEG; q=1", "br", true),
            ("image/x-any", "x-gzip", true), ("image/png", "identity", false),
            ("image/svg+xml", "gzip", false), ("application/json", "gzip", false),
        ])
    func veiled(type: String, coding: String, isVeiled: Bool) {
        let head = ResponseHead(200, "Content-Type: \(type)", "Content-Encoding: \(coding)")
        #expect(ImageProbe.isCodedRaster(head) == isVeiled)
        #expect(!ImageProbe.isCodedRaster(ResponseHead(200, "Content-Type: \(type)")))
    }

    @Test(
        "For an unknown type only signatures that do not occur by chance are accepted",
        arguments: [
            ("image/x-any", ImageSample.png(3, 4), true),
            ("application/octet-stream", ImageSample.jpegStart + ImageSample.frame(3, 4), true),
            ("image/x-any", ImageSample.bitmap(ImageSample.information(3, 4)), false),
            ("image/x-tga", [0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9], false),
            ("image/x-any", ImageSample.png(0, 4), false),
            ("image/x-any", "ftypftypisom0000".bytes, false), ("application/json", [], false),
            ("video/mp4", ImageSample.fileType("isom", "mp41"), false),
        ] as [(String, [UInt8], Bool)])
    func unknownType(type: String, bytes: [UInt8], isImage: Bool) {
        let finding = probe(type, [bytes], isEnd: true)
        #expect(finding.metadata?.size == (isImage ? PixelSize(width: 3, height: 4) : nil))
        #expect((finding == .unknown) == !isImage)
    }

    @Test("A body shorter than the longest signature is decided at its end")
    func short() {
        let svg = ImageProbeResult.image(ImageMetadata(format: .svg, size: nil))
        #expect(probe("image/svg+xml", ["<svg/>".bytes]) == .needsMore)
        #expect(probe("image/svg+xml", ["<svg/>".bytes], isEnd: true) == svg)
        #expect(probe("image/gif", ["GIF89a".bytes], isEnd: true) == .unreadable)
        #expect(probe("image/gif", ["GIF".bytes], isEnd: true) == .typeMismatch(nil))
    }

    @Test("A size beyond the probe's limit is not awaited")
    func limit() {
        let segment: [UInt8] = [0xFF, 0xE2, 0xFF, 0xFF] + [UInt8](repeating: 1, count: 65_533)
        let count = ImageProbe.bytesMax / segment.count
        let many = ImageSample.jpegStart + (0..<count).flatMap { _ in segment }
        let found = probe("image/jpeg", [many, ImageSample.frame(5, 6)])
        #expect(found.metadata?.size == PixelSize(width: 5, height: 6))
        #expect(probe("image/jpeg", [many, Array(segment.prefix(4))]) == .unreadable)
        let late = ImageSample.big(ImageProbe.bytesMax) + "mdat".bytes
        #expect(probe("image/avif", [ImageSample.fileType("avif") + late]) == .unreadable)
    }

    @Test("Random bytes are probed to their end", arguments: 0..<200)
    func anything(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let sample = ImageSample.all[Int(seed) % ImageSample.all.count]
        var bytes = sample.bytes
        for _ in 0..<4 {
            let place = Int.random(in: 0..<bytes.count, using: &dice)
            bytes[place] = dice.byte(of: [0, 1, 7, 8, 0x7F, 0x80, 0xFE, 0xFF, bytes[place] ^ 1])
        }
        let whole = probe(sample.type, [bytes], isEnd: true)
        #expect(whole != .needsMore)
        #expect(probe(sample.type, bytes.map { [$0] }, isEnd: true) == whole)
    }
}
