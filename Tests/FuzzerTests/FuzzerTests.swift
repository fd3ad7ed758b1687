import Foundation
import Fuzzers
import Ground
import Testing
import Trials

@Suite("Fuzz targets")
struct FuzzerTests {
    @Test("Each target has first inputs, and holds its invariants for them and for changed ones")
    func seeds() throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "fuzz-seeds-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let script = Process()
        script.executableURL = URL(filePath: "/usr/bin/env")
        script.arguments =
            ["bash", "deploy/fuzz", "seeds", folder.path] + FuzzTarget.all.map(\.name)
        try script.run()
        script.waitUntilExit()
        #expect(script.terminationStatus == 0)
        var dice = SplitMix64(seed: 1)
        for target in FuzzTarget.all {
            let files = try FileManager.default.contentsOfDirectory(
                at: folder.appending(path: target.name), includingPropertiesForKeys: nil)
            #expect(!files.isEmpty, "\(target.name)")
            for file in files.sorted(by: { $0.path < $1.path }) {
                let seed = [UInt8](try Data(contentsOf: file))
                #expect(seed.count >= target.bytesMin, "\(file.path)")
                target.run(seed)
                for _ in 0..<Trials.count(32, long: 10_000) {
                    target.run(changed(seed, using: &dice))
                }
            }
        }
    }

    /// The input with a few bytes replaced, and sometimes cut or repeated in part.
    private func changed(_ input: [UInt8], using dice: inout SplitMix64) -> [UInt8] {
        var bytes = input
        for _ in 0..<Int.random(in: 1...4, using: &dice) where !bytes.isEmpty {
            let place = Int.random(in: bytes.indices, using: &dice)
            switch Int.random(in: 0..<4, using: &dice) {
            case 0: bytes.removeSubrange(place...)
            case 1: bytes.insert(contentsOf: bytes[place...].prefix(16), at: place)
            default: bytes[place] = .random(in: 0...255, using: &dice)
            }
        }
        return bytes
    }
}
