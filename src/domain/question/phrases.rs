//! The phrases by which people and agents ask without a question mark; see [`super::sentence`] for
//! how they are written.

use std::sync::LazyLock;

use super::{Asks, sentence::Pattern};

type Phrases = LazyLock<Vec<Pattern>>;

fn patterns(texts: &[&'static str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text)).collect()
}

/// Questions whose mark was left out.
pub(super) static QUESTIONS: Phrases = LazyLock::new(|| {
    patterns(&[
        "^is it|that|this ok|okay|fine|alright|acceptable",
        "^ok|okay if|for|with i|we|me|you",
        "^ok|okay to",
        "mind if i|we",
        "wdyt",
        "^any thoughts|objections|objection|preference|preferences|ideas|idea|concerns",
        "^any news|update|updates|word|progress|decision|verdict|answer|opinion|opinions|advice on|yet|from|about|for",
        "^any news|update|updates|word|progress|decision|verdict|answer|opinion|opinions|advice$",
        "^thoughts$",
        "^what now|next$",
        "whats your|the preference|opinion|take|call|view|choice|eta|status|plan|state|verdict",
        "^what is your|the preference|opinion|take|call|view|choice|eta|status|verdict",
        "^^whats|wheres|whos your|the",
        "^which one|ones is|are|do|does|should|shall|would|can",
        "^which of",
        "question|questions is|are whether|if|how|which|what|who|when|\u{fffc}",
        "i|we have|got a|one|two|another|some|quick question|questions",
        "^question:",
        "question for you|human|everyone|all",
        "^one|another|quick|open|remaining|short question:",
        "i|we need|want|have|like to know whether|if|which|what|how|who|when|where|why",
        "id|wed|would like|love to know",
        "wondering|wonder if|whether|which|what|how|why|who|when",
        "^why|how does|do|did|is|are|was|were",
        "^what does|do|did",
        "dont|cannot|cant know|tell whether|which to|i|we|should",
        "do not know whether|which to|i|we|should",
        // German
        "^^frage:",
        "^^eine|kurze|kleine|noch frage|rückfrage",
        "^^soll|sollen|darf|dürfen|kann|können ich|wir",
        "^^kannst|könntest|könnt|möchtest|willst|wollt|hast|magst|würdest du|ihr",
        "^^können|könnten|möchten|würden sie",
        "^^was meinst|denkst|hältst|schlägst du",
        "^^welche|welcher|welches|welchen .. soll|sollen|willst|möchtest|bevorzugst ich|wir|du|ihr",
        "^^sind|ist|gibt|hat die|das|der|es|wir|ihr|jemand",
        "^^wie|wann|wo|was soll|sollen ich|wir",
        // French
        "^^dois|puis|peux|faut|veux|pouvez|voulez|devons|devrais je|tu|il|vous|nous|on",
        "^^est ce que|qu",
        // Spanish
        "^^puedes|podrías|puedo|podemos|debo|debemos|quieres",
        "^^pregunta:",
    ])
});

/// Requests for a decision, whatever stands before them.
pub(super) static DECISIONS: Phrases = LazyLock::new(|| {
    patterns(&[
        "until|till|once|as you|someone|somebody|human approve|approves|confirm|confirms|decide|decides|agree|agrees|signoff|signsoff|goahead|choose|chooses|say|says|tell|answer|reply|respond|give|gives|ok|okay",
        "say the word",
        "yours to decide|choose|make|pick|call|take",
        "for you to decide|choose|approve|confirm|say",
        "without .. word|answer|reply|input|decision from|by you|human|someone|somebody",
        "blocked|stuck|stopped|paused|parked on|for|until|till you|your",
        "cant|cannot|wont go|proceed|continue|start|move .. until|without you|your",
        "torn between",
        "on the fence",
        "could use .. input|opinion|advice|view|decision|guidance",
        "ja oder nein",
        "was dir|euch ist lieber",
        "ist dir|euch lieber",
        "thoughts|feedback|opinions|comments|objections|suggestions|views|input .. welcome|appreciated",
        "unless you|someone|somebody|anyone|anybody object|objects|disagree|disagrees|say|says|tell|tells|stop|stops|prefer|want",
        "tell|let|give|ping|shout me|us .. otherwise|else",
        "speak|object .. otherwise|else",
        "bescheid sonst|ansonsten|andernfalls",
        "meldet|melde euch|dich .. sonst|ansonsten",
        "just|only say yes|go|ok|okay|when|sayso",
        "before you|someone|somebody|human approve|confirm|decide|agree|say|answer",
        "until|till|once|before|after you|someone|somebody|we|human .. make|made|take|taken|have|reach .. decision|call|choice",
        "if|when thats|this|that|its|it .. fine|ok|okay|good|alright|acceptable with|for|by you",
        "when|after you|someone|somebody|human approve|approves|confirm|confirms|decide|decides|agree|agrees|choose",
        "once|until i|we have|get|hear .. approval|decision|goahead|signoff|ok|okay|answer|confirmation|you",
        "if you approve|agree",
        "cant|cannot|wont|not .. without .. approval|decision|goahead|signoff|greenlight|consent|confirmation|ok|okay",
        "not sure|certain whether",
        "not sure|certain if i|we",
        "not sure|certain which|what to|i|we|you",
        "not sure|certain which .. to|should",
        "unsure whether|which|if|what",
        "undecided",
        "cant|cannot decide",
        "yes|go or no$",
        "^yes|go or no",
        "goahead or|and not|no",
        "go no go",
        "^a or b",
        "^option a|1|one or b|2|two|option",
        "^either a or b",
        "^options a|1|one",
        "^vote on|for|a|b",
    ])
});

/// Requests for a decision that a `no` or `not` turns into their opposite.
pub(super) static NEGATABLE_DECISIONS: Phrases = LazyLock::new(|| {
    patterns(&[
        // please ...
        "please|pls|plz|kindly .. decide|confirm|approve|choose|advise|clarify|vote|signoff|specify|object|weigh|answer|authorize|authorise|greenlight|arbitrate|mediate",
        "please|pls|plz pick|choose$",
        "please|pls|plz make|take the|a|this|your call|decision|choice",
        "please|pls|plz pick:",
        "vote please",
        "help me|us choose|decide|pick",
        "above my pay grade",
        "over to you",
        "good|great|nice|best to get|have your approval|decision|signoff|goahead|view|opinion|input",
        "^^confirm|approve before|first|please",
        "we should|must|need decide|agree on|whether|which",
        "like|want|need|love a|another second opinion",
        "need|needs|require|requires .. explicit|your permission",
        "please|pls|plz pick|select|name one|a|an|between|either|which|whichever|your|the|option|from",
        "please .. let|tell|say me|us|which|whether .. if|whether|which|what|how",
        "please say|answer|reply|respond whether|which|yes|with|by|if",
        "^decide whether|if|which|between|on|how|what|who|when",
        "^confirm whether|if|which|that|or",
        "^approve or|this|it|the",
        "^pick|choose|select one|between|either|which|whichever|option",
        "^advise$",
        "^advise|clarify whether|which|if",
        "^say whether|if",
        "^say which$",
        "^say which one|of|option|way",
        // ... me ...
        "let|tell me|us know whether|which|your|who|where",
        "tell me|us whether|which|your|who|where",
        "let|tell me|us .. if i|we|thats|ok|okay",
        "let|tell me|us .. if you approve|agree|want|prefer|object|disagree|would|think|can|could|accept|mind|like|are|see",
        "let|tell me|us .. if youd prefer|rather|like|want|object",
        "let|tell me|us .. if youre|you are|re ok|okay|fine|happy|good|against",
        "let|tell me|us .. if this|that|it|the|either .. ok|okay|fine|acceptable|alright|good|right|desired|wanted",
        "let|tell me|us .. if this|that works|suits|fits",
        "let|tell me|us .. how you|i|we|to",
        "let|tell me|us .. what you think|prefer|want|decide|would|like|need|suggest|say",
        "let|tell me|us .. what i|we|to should|can|must|do|use|pick|choose|name",
        "let|tell me|us .. when i|we|to can|may|should|start",
        "give me|us .. goahead|greenlight|signoff|approval|decision|ok|okay|thumbsup|answer|verdict",
        "need|needs|want|await|awaiting|waiting|looking you|human|someone|somebody|for|on .. to decide|choose|confirm|approve|signoff|pick|weigh",
        // I need ...
        "need|needs|require|requires|await|awaits|awaiting|waiting|pending|requesting|request|seeking|blocked|asking|missing approval|decision|decisions|goahead|signoff|greenlight|verdict|ruling|consent|clearance|sayso|thumbsup|confirmation|clarification",
        "need|needs|require|requires|await|awaits|awaiting|waiting|pending|requesting|request|seeking|blocked|asking|missing|want|wants .. a|an|the|your|some|for|on|human|explicit|final|quick approval|decision|goahead|signoff|greenlight|verdict|ruling|consent|clearance|sayso|thumbsup",
        "need|needs|require|await|awaiting|waiting|pending|requesting|request|seeking|blocked|wait|holding|hold|want|appreciate|like|love|asking|ask .. your approval|decision|goahead|signoff|greenlight|verdict|consent|sayso|thumbsup|input|feedback|opinion|answer|reply|response|call|preference|choice|confirmation|ok|okay|guidance|advice|thoughts|view|views|take|vote|permission|clarification|word|nod|direction|steer|blessing",
        "need|needs|require|await|awaiting|waiting|requesting|request|seeking|want|asking input|feedback|guidance|clarification|permission|confirmation|direction|advice",
        "need|needs|awaiting|waiting|want .. input|feedback|guidance|clarification|permission|confirmation|direction|answer|answers|ok|okay|word|opinion|call|pick|vote from|by you|human|someone|somebody|ada",
        "waiting for|on you|human",
        "need|needs|require|await|awaiting|waiting|want|get|got|like for|a|an|your .. yes|go|nod|no",
        "need|needs|have to know|hear that|which|whether|if|who|what|from|first|before",
        "need|needs|await|awaiting an|some answer|answers|guidance|clarification|advice",
        "approval|decision|goahead|signoff|verdict|consent|confirmation|clarification|choice .. needed|required|wanted|requested|pending|outstanding|missing",
        "your input|feedback|opinion|answer|reply|preference|vote|call|view|ok|okay|thoughts .. needed|required|wanted|requested|please|appreciated",
        // it is yours ...
        "its|is|thats|be|remains your call|decision|choice",
        "^your call|choice|decision|pick$",
        "^your call|choice on|whether|which|here|please",
        "your call|decision|choice please",
        "up to you",
        "leave|leaving|left it|this|that|these|decision|choice .. to you|human",
        "you|human decide|choose$",
        "you decide|choose which|whether|what|how|if|between",
        "you|someone|somebody|human|person|user|owner must|should decide",
        "someone|somebody|human must|should choose|approve|confirm",
        "tie breaker",
        "ball is in your",
        "asking|ask|looking|hoping for permission|approval|confirmation",
        "looking|hoping for .. approval|decision|goahead|signoff|verdict",
        "await|awaiting|waiting .. instructions|instruction|orders|directions",
        "let me|us have your decision|answer|approval|choice|opinion|view|ok|okay",
        "^^let me|us know$",
        "decision|approval|answer|confirmation would .. help|great|appreciated|good|nice",
        "advise|unsure|unclear|sure .. how to proceed",
        "you|someone|somebody|human|person|user|owner|we|team have|has|need|needs to decide|choose|approve|confirm|agree",
        "needs|has|have|remains|need to be decided|settled|approved|confirmed",
        "must be decided|approved",
        "needs deciding",
        "open|pending|outstanding decision|decisions:",
        "ready|up|out|here|submitted .. for your approval|decision|signoff|confirmation",
        "speak up if|now",
        // German
        "bitte .. entscheide|entscheidet|entscheiden|bestätige|bestätigen|bestätigt|wähle|wählt|freigeben|genehmige|genehmigen|gib|gebt|freigabe|bestätigung|entscheidung",
        "bitte um .. entscheidung|meinung|freigabe|bestätigung|antwort|rückmeldung",
        "^entscheide|entscheidet$",
        "^entscheide|entscheidet ob|zwischen|bitte|du|ihr|selbst",
        "du entscheidest",
        "ihr entscheidet",
        "du|ihr|jemand|wir|mensch musst|müsst|muss|müssen|sollte|solltest .. entscheiden",
        "muss|sollte .. entschieden",
        "brauche|brauchen|bräuchte|warte|warten .. ja|go|grünes|nicken",
        "deine|eure|ihre meinung|einschätzung",
        "bescheid ob|welche|welcher|welches|welchen|wie|was|wann|wer|wo",
        "bescheid wenn ich|wir",
        "sag|sagt|sage|sagen mir|uns|bitte|sie .. ob|welche|welcher|welches|welchen|wie|was|wann|wer",
        "brauche|brauchen|braucht|benötige|benötigen|warte|warten|erwarte|erbitte .. entscheidung|freigabe|zustimmung|bestätigung|genehmigung|antwort|rückmeldung|meinung|ok|okay|erlaubnis",
        "entscheidung|freigabe|zustimmung|bestätigung|genehmigung .. nötig|erforderlich|ausstehend|fehlt|offen|gebraucht|benötigt|steht",
        "deine|eure entscheidung|wahl|sache$",
        "liegt bei dir|euch|ihnen",
        // French
        "merci de .. décider|choisir|confirmer|valider|trancher|approuver|dire",
        "dis|dites|dit moi|nous si|quel|quelle|lequel|laquelle|ce|quoi|comment",
        "à toi|vous de décider|choisir|trancher|voir",
        "besoin .. accord|avis|feuvert|validation|approbation|décision|confirmation|réponse",
        "faut|faudrait .. accord|avis|feuvert|validation|décision",
        "jattends|attends|attente|attendons|attend .. accord|feuvert|réponse|décision|validation|avis|confirmation",
        "jaimerais|aimerais|voudrais .. avis|accord|confirmation|validation",
        "ton|votre avis$",
        "veuillez .. confirmer|choisir|décider|valider|trancher",
        "décide|décidez|tranche|tranchez|choisis|choisissez svp|stp|entre|si",
        // Spanish
        "por favor .. decide|decidid|decida|confirma|confirme|elige|elija|aprueba|apruebe|dime|indica",
        "dime|dígame|confírmame|confirmame|decidme|avísame|avisa|indícame si|cuál|qué|cómo",
        "necesito|necesitamos que decidas|confirmes|apruebes|elijas|digas|decidáis|me",
        "necesito|necesitamos|espero|esperamos|esperando|espera .. aprobación|decisión|confirmación|vistobueno|respuesta|opinión|permiso",
        "decide|decides tú|usted",
        "espera de .. respuesta|confirmación|aprobación|decisión|vistobueno",
        "dame|danos .. opinión|vistobueno|confirmación|aprobación",
        // Portuguese and Italian
        "por favor .. decida|confirme|escolha|aprove",
        "fammi|fatemi sapere se|quale|cosa",
        // Russian
        "пожалуйста .. реши|решите|подтверди|подтвердите|выбери|выберите",
        "нужно|нужен|нужна .. решение|подтверждение|согласие|одобрение|ответ",
    ])
});

/// In scripts without spaces between words.
pub(super) const SUBSTRINGS: &[(&str, Asks)] = &[
    ("ですか", Asks::Question),
    ("ますか", Asks::Question),
    ("でしょうか", Asks::Question),
    ("ませんか", Asks::Question),
    ("吗。", Asks::Question),
    ("嗎。", Asks::Question),
    ("教えてください", Asks::Question),
    ("てよいか", Asks::Question),
    ("てもよいか", Asks::Question),
    ("是否可以", Asks::Question),
    ("能否", Asks::Question),
    ("要不要", Asks::Question),
    ("好吗", Asks::Question),
    ("告诉我是否", Asks::Question),
    ("까요", Asks::Question),
    ("决定一下", Asks::Decision),
    ("请决定", Asks::Decision),
    ("请您决定", Asks::Decision),
    ("请确认", Asks::Decision),
    ("请批准", Asks::Decision),
    ("请选择", Asks::Decision),
    ("請決定", Asks::Decision),
    ("請確認", Asks::Decision),
    ("決めてください", Asks::Decision),
    ("選んでください", Asks::Decision),
    ("確認してください", Asks::Decision),
    ("ご確認ください", Asks::Decision),
    ("承認してください", Asks::Decision),
    ("ご判断", Asks::Decision),
    ("ご承認", Asks::Decision),
    ("ご意見", Asks::Decision),
    ("ご回答", Asks::Decision),
    ("確認をお願い", Asks::Decision),
    ("承認をお願い", Asks::Decision),
    ("判断をお願い", Asks::Decision),
    ("请告知", Asks::Decision),
    ("请指示", Asks::Decision),
    ("等你确认", Asks::Decision),
    ("等待你的确认", Asks::Decision),
    ("결정해", Asks::Decision),
    ("확인해 주", Asks::Decision),
    ("승인해", Asks::Decision),
];

/// What a program says follows.
pub(super) static REPORTS: Phrases = LazyLock::new(|| {
    patterns(&["prints|printed|logs|logged|outputs|prompts|stdout|stderr|warning|hint:"])
});

/// What has the form of a question and wants no answer.
pub(super) static RHETORIC: Phrases = LazyLock::new(|| {
    patterns(&[
        "^^who would have",
        "^^who knew",
        "^guess what",
        "^^isnt|arent it|that|they great|nice|lovely|funny|neat|cool|ironic",
        "^^how cool|great|nice|neat|hard can|could|is",
        "^^what could|can .. go wrong",
        "^^wer hätte",
        "^isnt it always",
        "wondering|wondered .. in the end",
        "in the end i|we",
    ])
});

/// How a writer answers the own question.
pub(super) static SELF_ANSWERS: Phrases = LazyLock::new(|| {
    patterns(&[
        "^^because",
        "^^turns|turned out",
        "^^answer:",
        "^^a:",
        "^^yes|no|nope|yep|ja|nein|oui|non|sí$",
        "^^green|none|done|nothing$",
        "^^weil|parce|porque",
    ])
});
