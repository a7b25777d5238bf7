"""The grammar of the sample corpus; `generator` reads it.

A production is `LEFT weight -> RIGHT ...`. A symbol on the right is one of

- `NP.role`: a constituent; its label is the part before the dot.
- `_name`: a part that is not a constituent.
- `NN:job`: a word from the list `job` of `words`, tagged NN.
- `of/IN`: the word itself with its tag.

`=PER` after either of the first two makes all its words one entity.

These features make the corpus hard, on purpose:

- Some names are also common words (`common_word_first`, `common_word_last`, `city`, `brand`).
- Some names are a place, a team and a person (`either`, `city`).
- Some capitals mean nothing (the beginning of a sentence, S.headline, titles), and some brands
  have no capitals.
- Some names are in only one split.
- S.duo has the pattern of Li et al. (2020), section 6.1: "Key and Peele" and "You and I" are
  works of art, but "Key and I" and "You and Peele" are not. The context on one
  side of a token does not distinguish them.
- In S.either the type is random, so no model reaches F1 100.
"""

PRODUCTIONS = """
_start 52 -> S.news
_start 10 -> S.sport
_start  7 -> S.duo
_start  6 -> S.headline
_start  5 -> S.either
_start  5 -> S.common
_start  4 -> S.market
_start  4 -> FRAG.table
_start  3 -> S.chat

# Sentences
S.news 5 -> NP.agent VP.act ./.
S.news 2 -> NP.agent VP.when ./.
S.news 2 -> PP.time ,/, NP.agent VP.act ./.
S.news 2 -> SBAR.when ,/, NP.agent VP.act ./.
S.news 2 -> S.clause ,/, CC:contrast S.clause ./.
S.news 2 -> "/`` S.clause ,/, "/'' NP.speaker VP.said ./.
S.news 1 -> S.clause ,/, NP.speaker VP.said ./.
S.news 1 -> ADVP.sure ,/, NP.agent VP.act ./.
S.clause 5 -> NP.agent VP.act
S.clause 1 -> NP.one VP.was
S.clause 1 -> NP.team VP.beat
S.clause 1 -> NP.city VP.host
S.chat 1 -> NP.agent VP.act ./.
S.sport 5 -> NP.team VP.beat ./.
S.sport 2 -> PP.time ,/, NP.team VP.beat ./.
S.sport 1 -> NP.city VP.host ./.
S.sport 1 -> NP.person VP.signed ./.
S.sport 2 -> S.beat ,/, but/CC S.clause ./.
S.beat 1 -> NP.team VP.beat
S.headline 3 -> NP.lead VP.lead
S.headline 2 -> NP.side VP.sidelead
S.headline 1 -> NP.crowd VP.leadmany
S.market 2 -> NP.shares VP.moved ./.
S.market 1 -> NP.company VP.moved ./.
S.market 1 -> NP.shares VP.movedwhen ./.
S.market 1 -> NP.shares VP.moved ,/, NP.speaker VP.said ./.
# A common word that begins the sentence, and is a name elsewhere.
S.common 2 -> NP.common VP.cost ./.
S.common 2 -> S.gerund VP.helped ./.
S.common 1 -> NP.common VP.cost ,/, NP.speaker VP.said ./.
S.gerund 1 -> VP.gerund
# The type of the name is random, so no model can predict all of them.
S.either 2 -> NP.either VP.react ./.
S.either 2 -> NP.agent VP.chose ./.
S.either 1 -> PP.time ,/, NP.either VP.react ./.
S.duo 3 -> NP.duo VP.show ./.
S.duo 1 -> NP.duo VP.show ,/, but/CC S.clause ./.
FRAG.table 3 -> NP.team NP.goals NP.team NP.goals
FRAG.table 2 -> NP.name PRN.country NP.digit
FRAG.table 1 -> NP.city NP.date
PRN.country 1 -> (/-LRB- NP.country )/-RRB-

# The XOR
NP.duo 1 -> _keypeele=WORK_OF_ART
NP.duo 1 -> _youi=WORK_OF_ART
NP.duo 1 -> NP.key and/CC NP.i
NP.duo 1 -> NP.you and/CC NP.peele
NP.duo 1 -> _rosereed=WORK_OF_ART
NP.duo 1 -> _mayhunt=WORK_OF_ART
NP.duo 1 -> NP.rose and/CC NP.hunt
NP.duo 1 -> NP.may and/CC NP.reed
_keypeele 1 -> Key/NNP and/CC Peele/NNP
_youi 1 -> You/PRP and/CC I/PRP
_rosereed 1 -> Rose/NNP and/CC Reed/NNP
_mayhunt 1 -> May/NNP and/CC Hunt/NNP
NP.key 1 -> _key=PER
NP.peele 1 -> _peele=PER
NP.rose 1 -> _rose=PER
NP.reed 1 -> _reed=PER
NP.may 1 -> _may=PER
NP.hunt 1 -> _hunt=PER
_key 1 -> Key/NNP
_peele 1 -> Peele/NNP
_rose 1 -> Rose/NNP
_reed 1 -> Reed/NNP
_may 1 -> May/NNP
_hunt 1 -> Hunt/NNP
NP.i 1 -> I/PRP
NP.you 1 -> You/PRP

# Who
NP.agent 8 -> NP.party
NP.agent 1 -> NP.subject
NP.whom 8 -> NP.party
NP.whom 1 -> NP.object
NP.party 7 -> NP.person
NP.party 5 -> NP.role
NP.party 4 -> NP.company
NP.party 3 -> NP.country
NP.party 2 -> NP.people
NP.party 2 -> NP.people PP.place
NP.party 2 -> NP.person and/CC NP.person
NP.party 1 -> NP.company ,/, NP.company and/CC NP.country
NP.people 2 -> NP.crowd
NP.people 1 -> CD:number NNS:people
NP.people 1 -> JJ:person_adjective NNS:people
NP.people 1 -> _nationality=MISC NNS:people
NP.people 1 -> NP.crowd SBAR.who
NP.crowd 1 -> NNS:people
NP.one 3 -> NP.person
NP.one 2 -> NP.role
NP.one 2 -> NP.city
NP.speaker 3 -> NP.person
NP.speaker 2 -> NP.role
NP.speaker 1 -> NP.subject
NP.lead 3 -> NP.name
NP.lead 2 -> NP.company
NP.lead 2 -> NP.country
NP.subject 1 -> PRP:subject
NP.object 1 -> PRP:object
NP.person 6 -> NP.name
NP.person 2 -> NP.name ,/, NP.role ,/,
NP.person 1 -> NP.name SBAR.who
NP.name 4 -> _fullname=PER
NP.name 3 -> _lastname=PER
NP.name 1 -> _firstname=PER
NP.name 2 -> NNP:title _lastname=PER
NP.name 1 -> NN:job _fullname=PER
_fullname 1 -> _first _last
_lastname 1 -> _last
_firstname 1 -> _first
_first 3 -> NNP:first
_first 2 -> NNP:common_word_first
_last 3 -> NNP:last
_last 2 -> NNP:common_word_last
NP.role 3 -> DT:det NN:job
NP.role 2 -> DT:det JJ:person_adjective NN:job
NP.role 2 -> DT:det _nationality=MISC NN:job
NP.role 2 -> NP.owner NN:job
NP.role 2 -> NP.job PP.ofgroup
NP.role 1 -> NP.job SBAR.who
NP.job 1 -> DT:det NN:job
NP.owner 2 -> _company=ORG 's/POS
NP.owner 2 -> _country=LOC 's/POS
NP.owner 1 -> _team=ORG 's/POS
NP.owner 1 -> _lastname=PER 's/POS
_nationality 1 -> JJ:nationality
NP.company 5 -> _company=ORG
NP.company 2 -> NP.institute=ORG
_company 3 -> NNP:company
_company 3 -> NNP:brand
_company 2 -> NNP:company NNP:suffix
_company 1 -> _last CC:ampersand _last
_company 1 -> NNP:city NNP:office
_company 1 -> NNP:small_brand
NP.institute 1 -> NP.seat PP.ofseat
NP.seat 1 -> NNP:institute
PP.ofseat 1 -> of/IN NP.seatname
NP.seatname 2 -> NNP:city
NP.seatname 1 -> NNP:country
NP.team 3 -> _team=ORG
NP.side 1 -> _team=ORG
_team 5 -> NNP:city
_team 2 -> NNP:city NNP:club
_team 1 -> NNP:either
NP.either 1 -> _either=PER
NP.either 1 -> _either=LOC
NP.either 1 -> _either=ORG
_either 1 -> NNP:either

# Where and when
NP.place 4 -> NP.city
NP.place 3 -> NP.country
NP.place 1 -> NP.spot PP.near
NP.place 1 -> the/DT _river=LOC
NP.city 5 -> _city=LOC
NP.city 1 -> NP.town ,/, NP.country ,/,
NP.town 1 -> _city=LOC
_city 1 -> NNP:city
NP.country 1 -> _country=LOC
_country 1 -> NNP:country
_river 1 -> NNP:river
NP.spot 1 -> DT:det NN:spot
PP.near 1 -> IN:near NP.city
PP.place 3 -> in/IN NP.place
PP.place 1 -> IN:near NP.place
PP.time 3 -> in/IN NP.month
PP.time 2 -> on/IN NP.day
PP.time 2 -> at/IN NP.event
PP.time 1 -> during/IN NP.meeting
NP.month 2 -> NNP:month
NP.month 1 -> NNP:month CD:year
NP.day 1 -> NNP:day
NP.date 1 -> CD:date
NP.event 1 -> the/DT _event=MISC
_event 2 -> NNP:city NNP:event
_event 1 -> CD:year NNP:event
_event 1 -> NNP:common_word_last NNP:event
NP.meeting 2 -> DT:det NN:meeting
NP.meeting 1 -> DT:det JJ:adjective NN:meeting
ADVP.sure 1 -> RB:sure
ADVP.how 1 -> RB:how
ADVP.far 1 -> RB:far

# Things
NP.thing 4 -> DT:any_det NN:thing
NP.thing 3 -> DT:any_det JJ:adjective NN:thing
NP.thing 2 -> NP.owner NN:thing
NP.thing 2 -> NP.what PP.about
NP.thing 1 -> NP.what PP.place
NP.thing 1 -> NP.what SBAR.that
NP.thing 1 -> _work=WORK_OF_ART
NP.thing 2 -> NP.things
NP.thing 1 -> NP.thing and/CC NP.thing
NP.what 1 -> DT:any_det NN:thing
NP.writing 2 -> NP.work
NP.writing 1 -> NP.work PP.place
NP.writing 1 -> "/`` NP.work "/''
NP.writing 1 -> NP.what PP.about
NP.work 1 -> _work=WORK_OF_ART
_work 3 -> The/NNP NNP:title_adjective NNP:title_noun
_work 2 -> NNP:title_noun of/IN NNP:title_noun
_work 1 -> NNP:common_word_first 's/POS NNP:title_noun
NP.things 2 -> NNS:things
NP.things 2 -> CD:number NNS:things
NP.things 2 -> JJ:adjective NNS:things
NP.things 1 -> _nationality=MISC NNS:things
NP.things 1 -> NP.several PP.place
NP.several 1 -> CD:number NNS:things
NP.common 3 -> JJ:common_adjective NN:stuff
NP.common 3 -> NN:common_noun NN:stuff
NP.awards 1 -> CD:number NNS:awards
NP.goals 1 -> CD:goals
NP.digit 1 -> CD:digit
NP.score 1 -> CD:score
NP.shares 2 -> NP.stock PP.ofcompany
NP.shares 1 -> NP.owner NNS:stock
NP.stock 1 -> NNS:stock
NP.percent 1 -> CD:digit NN:percent
PP.ofcompany 1 -> in/IN NP.company
PP.ofgroup 2 -> of/IN NP.company
PP.ofgroup 2 -> of/IN NP.team
PP.ofgroup 1 -> of/IN NP.country
PP.about 2 -> IN:about NP.company
PP.about 2 -> IN:about NP.country
PP.about 1 -> IN:about NP.name
PP.about 1 -> IN:about NP.things
PP.to 2 -> to/TO NP.whom
PP.with 1 -> with/IN NP.whom
PP.for 1 -> for/IN NP.team
PP.into 2 -> to/TO NP.place
PP.into 1 -> to/TO NP.team
PP.against 1 -> against/IN NP.team
PP.by 1 -> by/IN NP.percent

# Events
VP.act 4 -> VBD:praised NP.thing
VP.act 4 -> VBD:bought NP.thing
VP.act 2 -> VBD:read NP.writing
VP.act 2 -> VBD:praised NP.thing PP.place
VP.act 2 -> VBD:bought NP.thing PP.place
VP.act 2 -> VBD:praised NP.whom
VP.act 3 -> VBD:visited NP.place
VP.act 2 -> VBD:visited NP.place PP.time
VP.act 2 -> VBD:talked PP.with
VP.act 3 -> VBD:sent NP.thing PP.to
VP.act 2 -> VBD:bought NP.thing PP.place PP.time
VP.act 2 -> VBD:praised NP.whom PP.time
VP.act 4 -> VBD:announced SBAR.content
VP.act 3 -> MD:modal VP.will
VP.act 2 -> VBD:wanted S.to
VP.act 2 -> VBD:set PRT.up NP.thing
VP.act 2 -> ADVP.how VBD:praised NP.thing
VP.act 2 -> VBD:gone PP.into
VP.act 1 -> VBD:gone PP.into PP.time
VP.act 1 -> VP.act and/CC VP.act
VP.act 1 -> did/VBD n't/RB VP.will
VP.when 2 -> VBD:bought NP.thing SBAR.when
VP.when 1 -> VBD:visited NP.place SBAR.when
VP.when 1 -> VBD:talked PP.with SBAR.when
VP.will 4 -> VB:praise NP.thing
VP.will 1 -> VB:praise NP.thing PP.place
VP.will 2 -> VB:visit NP.place
VP.will 1 -> VB:visit NP.place PP.time
VP.will 1 -> VB:talk PP.with
S.to 1 -> VP.to
VP.to 1 -> to/TO VP.will
PRT.up 1 -> RP:particle
VP.said 3 -> VBD:said
VP.said 1 -> VBD:said PP.time
VP.was 2 -> was/VBD ADJP.state
VP.was 1 -> was/VBD NP.role
ADJP.state 2 -> JJ:state
ADJP.state 1 -> RB:very JJ:state
VP.beat 4 -> VBD:beat NP.team NP.score
VP.beat 2 -> VBD:beat NP.team PP.time
VP.beat 1 -> drew/VBD NP.score PP.against
VP.host 2 -> VBD:hosted NP.meeting
VP.host 1 -> VBD:hosted NP.event
VP.host 1 -> was/VBD ADJP.state
VP.signed 1 -> signed/VBD PP.for PP.time
VP.signed 1 -> VBD:scored PP.for PP.against
VP.lead 2 -> VBZ:praises NP.things
VP.lead 1 -> VBZ:praises NP.lead
VP.lead 1 -> VBZ:visits NP.place
VP.leadmany 1 -> VBP:praise NP.things
VP.sidelead 1 -> VBZ:beats NP.side
VP.moved 2 -> VBD:moved NP.percent
VP.moved 1 -> VBD:moved PP.by
VP.movedwhen 1 -> VBD:moved NP.percent SBAR.when
VP.moved 1 -> VBD:moved ADVP.far
VP.cost 1 -> was/VBD ADJP.state PP.place
VP.cost 1 -> VBD:helped NP.person
VP.helped 1 -> VBD:helped NP.whom
VP.helped 1 -> VBD:helped NP.whom PP.time
VP.gerund 1 -> VBG:gerund NP.things
VP.react 2 -> VBD:praised NP.thing
VP.react 1 -> VBD:praised NP.thing PP.time
VP.chose 1 -> VBD:chose NP.either
VP.chose 1 -> ADVP.how VBD:chose NP.either
VP.show 2 -> won/VBD NP.awards
VP.show 1 -> VBD:pleased NP.whom
VP.show 1 -> VBD:pleased NP.people PP.place
VP.show 1 -> VBD:pleased NP.whom PP.time
SBAR.content 3 -> that/IN S.clause
SBAR.content 1 -> S.clause
SBAR.when 1 -> IN:when S.clause
SBAR.who 1 -> WHNP.who S.gap
SBAR.that 1 -> WHNP.that S.wanting
WHNP.who 1 -> who/WP
WHNP.that 1 -> that/WDT
S.gap 1 -> VP.act
S.wanting 1 -> NP.agent VP.bare
VP.bare 1 -> VBD:praised
"""
