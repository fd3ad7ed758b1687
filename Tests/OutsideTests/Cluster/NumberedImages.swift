import Harness

/// More images than anybody wants to keep: each is made from its number, wherever it is wanted.
enum NumberedImages {
    /// The numbers of those begin here that nobody has asked for before.
    static let newStart = 1_000_000

    static func path(_ number: Int) -> String { "/n/\(number)" }

    static func image(_ number: Int) -> TestImage {
        .generated(.png, byteCount: 600 + number % 97, seed: UInt64(number))
    }
}

extension ScriptedOrigin {
    /// Serves each of ``NumberedImages``.
    func serveNumberedImages() {
        onAnyOtherPath { request in
            guard request.path.hasPrefix("/n/"), let number = Int(request.path.dropFirst(3)) else {
                return .text("no such thing", status: "404 Not Found")
            }
            return OriginResponse(NumberedImages.image(number), fields: [lasting])
        }
    }

    /// How often each of ``NumberedImages`` was asked for that ever was.
    func numberedFetches() -> [Int: Int] {
        log.reduce(into: [:]) { counts, request in
            guard request.path.hasPrefix("/n/"), let number = Int(request.path.dropFirst(3)) else {
                return
            }
            counts[number, default: 0] += 1
        }
    }
}
