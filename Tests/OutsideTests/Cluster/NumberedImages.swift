import Harness

/// A practically unlimited set of images, each generated from its number on demand.
enum NumberedImages {
    /// The first number of the images that no test has requested before.
    static let newStart = 1_000_000

    static func path(_ number: Int) -> String { "/n/\(number)" }

    static func image(_ number: Int) -> TestImage {
        .generated(.png, byteCount: 600 + number % 97, seed: UInt64(number))
    }
}

extension ScriptedOrigin {
    /// Serves all ``NumberedImages``.
    func serveNumberedImages() {
        onAnyOtherPath { request in
            guard request.path.hasPrefix("/n/"), let number = Int(request.path.dropFirst(3)) else {
                return .text("no such thing", status: "404 Not Found")
            }
            return OriginResponse(NumberedImages.image(number), fields: [lasting])
        }
    }

    /// Returns the number of requests for each of ``NumberedImages`` that was requested.
    func numberedFetches() -> [Int: Int] {
        log.reduce(into: [:]) { counts, request in
            guard request.path.hasPrefix("/n/"), let number = Int(request.path.dropFirst(3)) else {
                return
            }
            counts[number, default: 0] += 1
        }
    }
}
