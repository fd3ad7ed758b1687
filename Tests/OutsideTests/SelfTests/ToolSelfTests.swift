import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The tools around a node measure correctly")
    struct ToolSelfTests {
        @Test("A program's status, output and errors are separate")
        func program() throws {
            let result = try Program.run("/bin/sh", ["-c", "echo out; echo err >&2; exit 7"])
            #expect(result.status == 7)
            #expect(String(decoding: result.output, as: UTF8.self) == "out\n")
            #expect(result.errors == "err\n")
        }

        @Test("A program stopped by a signal is distinguished from one that ends by itself")
        func terminated() throws {
            let program = try Program("/bin/sh", ["-c", "exec sleep 600"])
            program.terminate()
            #expect(program.wait(seconds: 30) == 128 + 15)
            #expect(!program.isRunning)
        }

        @Test("A program that takes too long is ended and has no status")
        func tooLong() throws {
            let result = try Program.run("/bin/sh", ["-c", "exec sleep 600"], seconds: 0.05)
            #expect(result.status == nil)
        }

        @Test("Variables reach the program, and those of a node only if given")
        func environment() throws {
            let print = ["-c", "echo $NUTHATCH_LOOPS $OTHER"]
            let result = try Program.run(
                "/bin/sh", print, environment: ["NUTHATCH_LOOPS": "2", "OTHER": "x"])
            #expect(String(decoding: result.output, as: UTF8.self) == "2 x\n")
        }

        @Test("Allocations under the counter are counted, and a busier program has more")
        func allocations() throws {
            let few = try AllocationCounter()
            let idle = try Program.run("/bin/sh", ["-c", "exit 0"], environment: few.environment)
            let many = try AllocationCounter()
            let loop = "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); eval \"v$i=value$i\"; done"
            let busy = try Program.run("/bin/sh", ["-c", loop], environment: many.environment)
            #expect(idle.status == 0 && busy.status == 0)
            #expect(few.count > 0)
            #expect(many.count > few.count + 2_000)
        }

        @Test("Generated images have their exact length, and the head and end of their type")
        func images() {
            for image in ImageCorpus.generated where image.byteCount < 2_000_000 {
                #expect(image.bytes.count == image.byteCount, "\(image.name)")
            }
            let ends: [(TestImage.Kind, [UInt8], [UInt8])] = [
                (.jpeg, [0xFF, 0xD8, 0xFF], [0xFF, 0xD9]),
                (.png, [0x89, 0x50, 0x4E, 0x47], [0xAE, 0x42, 0x60, 0x82]),
                (.gif, Array("GIF89a".utf8), [0x3B]),
                (.webp, Array("RIFF".utf8), []),
                (.bmp, Array("BM".utf8), []),
                (.ico, [0, 0, 1, 0], []),
                (.svg, Array("<?xml".utf8), Array("</svg>\n".utf8)),
            ]
            for (kind, start, end) in ends {
                let bytes = TestImage.generated(kind, byteCount: 5_000, seed: 7).bytes
                #expect(bytes.starts(with: start), "\(kind)")
                #expect(bytes.suffix(end.count) == end[...], "\(kind)")
            }
            let sizes = Set(ImageCorpus.generated.map(\.byteCount))
            #expect(sizes.contains(200) && sizes.contains(20_000_000))
        }

        @Test("Images of different seeds differ, and a piece of one occurs nowhere else in it")
        func seeds() {
            let one = TestImage.generated(.webp, byteCount: 3_000_000, seed: 8)
            let two = TestImage.generated(.webp, byteCount: 3_000_000, seed: 9)
            let same = zip(one.bytes, two.bytes).count { $0 == $1 }
            #expect(same < 30_000)
            let pieces = stride(from: 65_536, to: 2_900_000, by: 65_536).map {
                one.bytes($0..<$0 + 64)
            }
            #expect(Set(pieces).count == pieces.count)
        }

        @Test("Real images are found if the shared folder exists, and have their stated size")
        func realImages() {
            #expect(ImageCorpus.real.allSatisfy { $0.byteCount > 0 })
            #expect(ImageCorpus.real.allSatisfy { $0.contentType.hasPrefix("image/") })
        }

        @Test("Targets are percent-encoded byte by byte")
        func targets() {
            #expect(
                ImageRequestTarget.forURL("http://h:1/ä?b=c&d")
                    == "/v1/image?url=http%3A%2F%2Fh%3A1%2F%C3%A4"
                    + "%3Fb%3Dc%26d")
        }
    }
}
