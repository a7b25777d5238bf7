"""The words of the sample corpus, and the syllables of its invented names, as data."""

WORDS = {
    "first": "Anna John Maria Peter Laura David Elena Robert Nadia Thomas Ingrid Paulo Sara Omar",
    "common_word_first": "May Rose Will Mark Grace Hope Bill Faith Frank Jordan Chelsea Dawn",
    "last": "Smith Garcia Nilsson Petrov Tanaka Moreau Keller Okafor Rossi Novak",
    "common_word_last": "Brown Young Cook Bush Stone Baker Wells Reed Key Peele May Rose "
    "Washington Jordan Bell Hunt",
    "city": "London Paris Reading Nice Bath Leeds Mobile Chelsea Washington Oslo Cork "
    "Split Orange Victoria",
    "country": "Germany France Jordan Turkey Chad Georgia China Brazil Norway Japan Mali "
    "Peru Kenya Canada",
    "river": "Amazon Jordan Severn Orange Volga Shannon",
    "company": "Siemens Toyota Unilever Nokia Novartis Lufthansa",
    "brand": "Apple Amazon Shell Orange Visa Gap Target Oracle Sprint Stone",
    "small_brand": "ebay adidas iRobot easyJet thyssenkrupp lastminute",
    "either": "Jordan Washington Chelsea Georgia Florence Victoria Sydney Orange Lincoln Austin",
    "suffix": "Inc. Corp. Ltd. Group Holdings",
    "office": "Museum Bank Council Airport Times",
    "institute": "University Bank Museum Council",
    "club": "United City Rovers Athletic",
    "event": "Cup Open Festival Games Olympics Marathon",
    "nationality": "German French Turkish Chinese Brazilian Nordic Kenyan Canadian Polish Thai",
    "title": "Mr. Mrs. Dr. President Captain",
    "title_adjective": "Silent Brown Nice Last Golden Broken Young Long Hidden",
    "title_noun": "River Stone Hope Kings Bread Winter Reading Glass Bells Dawn Roses",
    "month": "May May May January March June August October December",
    "day": "Monday Tuesday Thursday Friday Sunday",
    "year": "1996 1998 2001 2004 2010 2016",
    "date": "1996-05-11 1996-08-30 2004-12-07 2010-03-22 2016-10-01",
    "digit": "1 2 3 4 5 6 9.81 10.4 12.5",
    "goals": "0 1 2 3 4 5",
    "score": "1-0 2-0 2-1 3-1 3-2 4-0 5-2",
    "number": "two three four six ten twelve",
    "det": "the the a",
    "any_det": "the the the a a this another every",
    "subject": "they she he we I you",
    "object": "them her him us me you",
    "contrast": "but and",
    "ampersand": "& and",
    "job": "minister coach spokesman president doctor lawyer judge manager striker singer "
    "director farmer captain baker cook editor mayor driver",
    "thing": "plan report decision offer proposal record budget contract song novel vote "
    "letter rose stone bill key bell target hope reading",
    "things": "reports talks bonds rules books songs roses goals markets stones keys bells "
    "bills plans letters targets",
    "people": "players workers voters children students farmers critics fans readers cooks "
    "bakers teachers drivers nurses",
    "awards": "prizes awards medals trophies",
    "stuff": "bread juice weather pie soup paint wood music",
    "stock": "shares bonds stocks",
    "common_noun": "apple orange rose shell stone turkey visa target bath key bell cork",
    "common_adjective": "brown nice young orange mobile split frank",
    "spot": "station harbour bridge market museum garden bath park",
    "meeting": "summit meeting festival race conference final debate",
    "adjective": "new old nice brown long secret public final strange mobile heavy orange",
    "person_adjective": "young old new nice famous angry frank stone-faced former local",
    "state": "ready quiet angry late nice frank young famous cheap happy",
    "percent": "percent",
    "very": "very too rather",
    "sure": "however clearly perhaps meanwhile surprisingly",
    "how": "quickly openly sharply never again barely loudly",
    "far": "sharply slightly quickly again",
    "near": "near outside",
    "about": "about on against from",
    "when": "after before because while although",
    "particle": "up aside",
    "modal": "may may will could must might",
    "praised": "praised rejected backed welcomed discussed remembered questioned ignored "
    "defended criticised",
    "bought": "bought sold opened dropped wanted left hid needed split marked",
    "read": "read saw liked mentioned reviewed",
    "praise": "praise reject back welcome discuss cook mark target bill split buy sell",
    "praises": "praises rejects backs welcomes marks targets sells hits",
    "visited": "visited left reached toured avoided",
    "visit": "visit leave reach tour",
    "visits": "visits leaves reaches",
    "talked": "talked met agreed argued quarrelled",
    "talk": "talk meet agree argue",
    "sent": "sent gave sold offered lent",
    "announced": "announced said thought denied hoped heard",
    "said": "said added wrote recalled",
    "wanted": "wanted hoped agreed refused tried",
    "set": "set put",
    "gone": "moved returned went travelled",
    "beat": "beat defeated thrashed edged",
    "beats": "beats edges downs",
    "hosted": "hosted prepared staged",
    "scored": "scored played started",
    "moved": "rose fell gained slipped jumped",
    "helped": "helped pleased cost annoyed",
    "gerund": "Reading Cooking Marking Baking Ringing Hunting",
    "chose": "chose picked backed mentioned preferred",
    "pleased": "pleased bored surprised amused",
}
"""Word lists, separated by blanks. A word that is listed twice is twice as likely."""

OPEN = ("adjective", "bought", "job", "people", "praised", "thing", "things")
"""Lists in which dev and test each have a tenth of the words for themselves."""

INVENTED = {"first": 16, "last": 40, "city": 24, "country": 6, "company": 24, "either": 4}
"""The number of invented names that each list gets: for all splits together, and for each split."""

# Syllables of the invented names; "-" stands for no coda. Endings overlap, as in real names: -ton
# ends the names of four kinds.
ONSETS = "b br d dr f g gr h k kl l m n p r s st t tr v w z"
NUCLEI = "a e i o u ae ei ou"
CODAS = "l n r s nd rk lm - - - -"
ENDINGS = {
    "first": "a o in ella us",
    "last": "son ov ez ton ford er ini ski berg",
    "city": "ville ton ford burg stead ham er",
    "country": "ia land stan",
    "company": "ex on tec is ton soft er",
    "either": "ton ford er",
}
